/** Receipts: of approvals (docs/approvals.md), and of stops (docs/stops.md). */
import type { JWTPayload } from "jose";

import { NotValid } from "../errors.js";
import { canonical, hexadecimal, sha256 } from "./canonical.js";
import { type Origin, claimsOf, text, whole } from "./jwt.js";

/** The act that a receipt must be for; of an approval that a decision opened, `details` hold its `resource` as well. */
export type ApprovedAct = Readonly<{ agentId: string; action: string; details: Readonly<Record<string, unknown>> }>;

/** An approval of an act; whether it has been used, the service alone can tell. */
export type VerifiedApproval = Readonly<{ approvalId: string; decidedBy: string; expiresAt: Date; claims: JWTPayload }>;

/** Check that this act of this agent was approved. Throws: NotValid. */
export async function verifyApprovalReceipt(receipt: string, act: ApprovedAct, origin: Origin): Promise<VerifiedApproval> {
  const claims = await claimsOf(receipt, "approval+jwt", { ...origin, environment: origin.environment ?? "live" });
  if (text(claims, "agent_id") !== act.agentId) throw new NotValid("wrong_agent");
  const hash = hexadecimal(await sha256(canonical({ action: act.action, details: act.details })));
  if (text(claims, "action_hash") !== hash) throw new NotValid("wrong_action", "for another action or other details");
  const [approvalId, decidedBy] = [text(claims, "approval_id"), text(claims, "decided_by")];
  return { approvalId, decidedBy, expiresAt: new Date(whole(claims, "exp") * 1000), claims };
}

/** Check a stop's receipt with the lines beside it, as JSON; return its claims. Throws: NotValid. */
export async function verifyHaltReceipt(receipt: string, lines: readonly unknown[], origin: Origin): Promise<JWTPayload> {
  const claims = await claimsOf(receipt, "halt+jwt", { ...origin, environment: origin.environment ?? "live" });
  const leaves = await Promise.all(lines.map((line) => sha256(Uint8Array.of(0), canonical(line))));
  if (claims["count"] !== leaves.length || claims["root"] !== hexadecimal(await rootOf(leaves))) {
    throw new NotValid("not_as_sealed", "the receipt is for other lines");
  }
  return claims;
}

/** The root of the tree over these leaves (RFC 6962 §2.1); a last node without a sibling moves up. */
async function rootOf(nodes: readonly Uint8Array<ArrayBuffer>[]): Promise<Uint8Array> {
  if (nodes.length < 2) return nodes[0] ?? sha256();
  const above = nodes.flatMap((left, place) => {
    const right = nodes[place + 1];
    return place % 2 ? [] : [right === undefined ? left : sha256(Uint8Array.of(1), left, right)];
  });
  return rootOf(await Promise.all(above));
}
