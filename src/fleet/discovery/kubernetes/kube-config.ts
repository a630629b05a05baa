/** An entry point of its own: few starts need the package, which is large. */
export { KubeConfig } from "@kubernetes/client-node/dist/config.js";
