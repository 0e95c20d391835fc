/** What can go wrong between a program and the service, and why something is not valid. */

/** Every error that this package throws on purpose. */
export class AgentIdError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The client cannot be set up like this. */
export class ConfigurationError extends AgentIdError {}
/** No complete answer came: refused, reset or timed out. */
export class Unreachable extends AgentIdError {}
/** An answer that this version cannot read. */
export class UnexpectedAnswer extends AgentIdError {}

/** The service refused a request; `message` is in its words, `retryAfter` in seconds, `error` a code of OAuth (RFC
 * 6749 §5.2). */
export class ServiceError extends AgentIdError {
  constructor(
    readonly status: number,
    message: string,
    readonly error?: string,
    readonly retryAfter?: number,
    readonly requestId?: string,
  ) {
    super(message);
  }
}

/** The request itself is wrong (4xx). */
export class Refused extends ServiceError {}
/** No API key, or one that does not count (401). */
export class NotAuthenticated extends Refused {}
/** The key may not do this (403). */
export class NotPermitted extends Refused {}
/** No such thing, or another tenant's (404). */
export class NotFound extends Refused {}
/** Another request holds the thing, or the idempotency key was used for something else (409). */
export class Conflict extends Refused {}
/** Sound, but impossible in the present state (422). */
export class NotPossible extends Refused {}
/** Too many requests; wait `retryAfter` seconds (429). */
export class RateLimited extends Refused {}
/** The service failed (5xx). */
export class ServerFailed extends ServiceError {}
/** A part of the service is away; wait `retryAfter` seconds (503). */
export class Unavailable extends ServerFailed {}

const KINDS = new Map<number, typeof ServiceError>([
  ...([[400, Refused], [401, NotAuthenticated], [403, NotPermitted], [404, NotFound], [409, Conflict]] as const),
  ...([[422, NotPossible], [429, RateLimited], [500, ServerFailed], [503, Unavailable]] as const),
]);

/** The class for a status; one of a hundred stands for those without a class of their own. */
export function kindFor(status: number): typeof ServiceError {
  return KINDS.get(status) ?? KINDS.get(Math.floor(status / 100) * 100) ?? ServiceError;
}

/** Whether the same request may succeed a little later. */
export function isPassing(error: unknown): error is RateLimited | Unavailable | Unreachable {
  return error instanceof RateLimited || error instanceof Unavailable || error instanceof Unreachable;
}

/** An act that is not allowed; `reasons` are the names of the decision's. */
export class NotAllowed extends AgentIdError {
  constructor(
    message: string,
    readonly decisionId: string,
    readonly approvalId: string | undefined,
    readonly reasons: readonly string[] = [],
  ) {
    super(message);
  }
}

/** The service or the person who was asked says no, or the approval has been used already. */
export class Denied extends NotAllowed {}
/** Nobody decided, or the receipt was not used, while the approval lasted. */
export class ApprovalExpired extends NotAllowed {}
/** Nobody decided in the time that the caller waits; the approval may still be decided. */
export class ApprovalTimedOut extends NotAllowed {}

/** The first check that failed. */
export type Reason =
  | ("malformed" | "unsupported_algorithm" | "unknown_key" | "invalid_signature" | "invalid_issuer")
  | ("wrong_environment" | "wrong_audience" | "not_yet_valid" | "expired" | "revoked" | "not_covered" | "not_as_sealed")
  | ("proof_required" | "wrong_key" | "wrong_request" | "wrong_token" | "wrong_nonce" | "wrong_agent" | "wrong_action");

/** A check failed; `reason` says which, `detail` more for people. */
export class NotValid extends AgentIdError {
  constructor(readonly reason: Reason, readonly detail = "") {
    super(detail ? `${reason}: ${detail}` : reason);
  }
}
