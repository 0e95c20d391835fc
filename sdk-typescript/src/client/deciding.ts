/** Ask before an act, and wait for the person who is asked. */
import { ApprovalExpired, ApprovalTimedOut, Denied, type NotAllowed, UnexpectedAnswer, isPassing } from "../errors.js";
import type { components } from "../generated/schema.js";
import type { Client } from "./client.js";
import { pause } from "./transport.js";

const LONGEST_WAIT = 30; // seconds, of one request
const PAUSE = 1; // seconds between requests that don't wait, or fail

export type ApprovalDetail = components["schemas"]["ApprovalDetail"];
type AccessDecision = components["schemas"]["AccessDecision"];

/** What an agent is about to do to `resource`. `actionType` and `details` are those of the event that would follow.
 * `token` is the delegation token that the act is under. */
export type Act = Readonly<{
  resource: { readonly type: string; readonly id: string; readonly [more: string]: unknown };
  actionType?: string; details?: Readonly<Record<string, unknown>>; token?: string;
}>;

/** How long to wait for a person; without `waitSeconds` until the approval expires. */
export type Waiting = Readonly<{ waitSeconds?: number; signal?: AbortSignal }>;

/** Whether the agent may act: only if `decision` is true; `outcome` is allow, ask or deny. Of the outcome ask
 * `approval` waits for a person. The event that follows may name the `decisionId`. */
export type Decision = Readonly<{
  decision: boolean; outcome: string; decisionId: string; reasons: NonNullable<AccessDecision["context"]["reasons"]>;
  riskScore: number | null; riskBand: string | null; approval: AccessDecision["context"]["approval"] | null;
}>;

export async function decide(
  client: Client,
  agentId: string,
  action: string,
  act: Act & { readonly approval?: string | undefined },
  signal?: AbortSignal,
): Promise<Decision> {
  const { actionType: action_type, details, token, approval } = act;
  const context: Record<string, unknown> = { action_type, details, token, approval };
  const question = { subject: { type: "agent", id: agentId }, action: { name: action }, resource: act.resource, context };
  const answer: AccessDecision = await client.decisions.evaluate(question, { signal });
  const told = answer.context;
  const { outcome, decision_id: decisionId } = told;
  const isWhole = outcome !== undefined && decisionId !== undefined && answer.decision === (outcome === "allow");
  if (!isWhole) throw new UnexpectedAnswer("not a decision");
  const [riskScore, riskBand] = [told.risk_score ?? null, told.risk_band ?? null];
  return { decision: answer.decision, outcome, decisionId, reasons: told.reasons ?? [], riskScore, riskBand, approval: told.approval ?? null };
}

/** The approval once it waits no longer, or as it is after `waitSeconds`. Meanwhile a service that is away or busy is
 * asked again, until the approval has expired by this machine's clock. */
export async function waitForApproval(client: Client, approvalId: string, waiting: Waiting): Promise<ApprovalDetail> {
  const { signal, waitSeconds = Number.POSITIVE_INFINITY } = waiting;
  const ends = performance.now() + waitSeconds * 1000;
  const longest = Math.max(0, Math.min(LONGEST_WAIT, Math.floor(client.transport.timeoutSeconds) - 1));
  const left = (): number => Math.max((ends - performance.now()) / 1000, 0);
  const get = (query: { wait?: number }): Promise<ApprovalDetail> =>
    client.approvals.get(approvalId, query, { signal });
  let found = await get({});
  while (found.status === "pending" && left() > 0) {
    const wait = Math.min(longest, Math.floor(left()));
    let pauseSeconds = wait === 0 ? PAUSE : 0;
    try {
      found = await get({ wait });
    } catch (error) {
      if (!isPassing(error) || Date.parse(found.expires_at) <= Date.now()) throw error;
      pauseSeconds = ("retryAfter" in error && error.retryAfter) || PAUSE;
    }
    if (pauseSeconds > 0 && found.status === "pending") await pause(Math.min(pauseSeconds, left()), signal);
  }
  return found;
}

/** Run the block only if the agent may act, and return what it returns. If a person is asked, it waits for the
 * decision until the approval expires, or `waitSeconds`, and uses the receipt, which is good once: a block that fails
 * must ask again. Throws before the block: Denied, ApprovalExpired, ApprovalTimedOut, and what a call throws. */
export async function asking<T>(
  client: Client,
  agentId: string,
  action: string,
  act: Act & Waiting,
  block: (decision: Decision) => T | Promise<T>,
): Promise<T> {
  let decision = await decide(client, agentId, action, act, act.signal);
  const approvalId = decision.approval?.id;
  if (approvalId !== undefined) {
    const found = await waitForApproval(client, approvalId, act);
    if (!found.receipt) throw ended(found, decision.decisionId);
    decision = await decide(client, agentId, action, { ...act, approval: found.receipt }, act.signal);
  }
  if (!decision.decision) {
    const reasons = decision.reasons.map((each) => each.name);
    const kind = reasons.includes("approval_expired") ? ApprovalExpired : Denied;
    const text = decision.reasons.map((each) => each.text).join("; ") || decision.outcome;
    throw new kind(text, decision.decisionId, approvalId, reasons);
  }
  return block(decision);
}

/** Why an approval has no receipt. */
function ended({ id, status, note }: ApprovalDetail, decisionId: string): NotAllowed {
  if (status === "pending") return new ApprovalTimedOut("nobody has decided yet", decisionId, id);
  if (status === "expired") return new ApprovalExpired("the approval has expired", decisionId, id);
  return new Denied(`the approval is ${status}${note ? `: ${note}` : ""}`, decisionId, id);
}
