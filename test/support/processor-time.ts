/** Milliseconds of the processor that this process has used: what others on the machine do does not make it longer. */
export const processorMs = (): number => process.cpuUsage().user / 1000;
