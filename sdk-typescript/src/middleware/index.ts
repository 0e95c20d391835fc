/** The service's decision in front of an application. */
export { type AgentIdentity, Gate, type GateOptions, type Inbound, Refusal } from "./gate.js";
export { type ExpressRequest, type ExpressResponse, expressGate, fetchGate } from "./handlers.js";
