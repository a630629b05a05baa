/** What belongs to a tenant, by its id; neither holds a line end. */
export const memoryKey = (tenant: string, id: string): string => `${tenant}\n${id}`;
