export { Continuo } from "./client.gen.js";
export { ContinuoError, type CallOptions, type Options, type ServerEvent } from "./transport.js";
export type * from "./types.gen.js";
