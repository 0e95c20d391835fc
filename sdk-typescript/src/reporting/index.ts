/** Reports an agent's actions. */
export type { ActionType, EventOptions, ReportedEvent } from "./encoding.js";
export { type Lost, Reporter, type ReporterOptions, type Statistics } from "./reporter.js";
