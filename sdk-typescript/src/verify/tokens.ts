/** Delegation tokens (docs/delegation.md): who acts for whom. */
import type { JWTPayload } from "jose";

import { NotValid } from "../errors.js";
import { type Origin, claimsOf, part, text, whole } from "./jwt.js";
import { type PresentedProof, verifyProof } from "./proofs.js";

/** Characters of the largest token that the service issues. */
const MAX_TOKEN = 18_432;
const MAX_CHAIN = 8;

/** What a receiver accepts: `audience` is its own name; `skewSeconds` is the clocks' difference. A token without an
 * audience is refused unless `acceptAnyAudience`. A bound token counts only with its `proof`. */
export type TokenRules = Origin & Readonly<{
  audience: string; skewSeconds?: number; acceptAnyAudience?: boolean; proof?: PresentedProof;
}>;

/** One of the chain; `kind` is human, agent, sub_agent or service. */
export type Actor = Readonly<{ sub: string; kind: string }>;

/** An authentic token for this receiver, now; `principal`, the last of `chain`, acts. `rootIssuer` names who vouched
 * for the root; null: the root is only asserted. `boundTo` is the thumbprint of the holder's key. `statusUri` and
 * `statusIndex` say where its revocation is published. */
export type VerifiedToken = Readonly<{
  tokenId: string; agentId: string; principal: string; chain: readonly Actor[]; scope: ReadonlySet<string>;
  issuedAt: Date; expiresAt: Date; environment: string; audience: string | null; certificateSerial: string | null;
  boundTo: string | null; rootIssuer: string | null; statusUri: string | null; statusIndex: number | null;
  claims: JWTPayload;
}>;

/** Check a token, and for a bound one the proof of possession. Throws: NotValid. What it says of revocation is not
 * asked here: `statusUri` and `certificateSerial` lead there. */
export async function verifyToken(token: string, rules: TokenRules): Promise<VerifiedToken> {
  if (token.length > MAX_TOKEN) throw new NotValid("malformed", "not a delegation token");
  const origin = { ...rules, environment: rules.environment ?? "live" };
  const found = read(await claimsOf(token, "delegation+jwt", origin, rules.skewSeconds ?? 60));
  const isForAnyone = found.audience === null && rules.acceptAnyAudience === true;
  if (found.audience !== rules.audience && !isForAnyone) throw new NotValid("wrong_audience");
  if (found.boundTo !== null) {
    if (rules.proof === undefined) throw new NotValid("proof_required", "the token is bound to a key");
    const holder = await verifyProof(rules.proof, token, rules.now);
    if (holder !== found.boundTo) throw new NotValid("wrong_key", "the proof is by another key");
  }
  return found;
}

function read(claims: JWTPayload): VerifiedToken {
  const status = "status" in claims ? part(part(claims, "status"), "status_list") : null;
  const chain = [actor(claims), ...("act" in claims ? actorsOf(part(claims, "act")) : [])];
  whole(claims, "nbf");
  return {
    tokenId: text(claims, "jti"),
    agentId: text(claims, "agent_id"),
    principal: chain.at(-1)?.sub ?? "",
    chain,
    scope: new Set(text(claims, "scope").split(/\s+/).filter(Boolean)),
    issuedAt: new Date(whole(claims, "iat") * 1000),
    expiresAt: new Date(whole(claims, "exp") * 1000),
    environment: text(claims, "env"),
    audience: "aud" in claims ? text(claims, "aud") : null,
    certificateSerial: "cert_serial" in claims ? text(claims, "cert_serial") : null,
    boundTo: "cnf" in claims ? text(part(claims, "cnf"), "jkt") : null,
    rootIssuer: "sub_id" in claims ? text(part(claims, "sub_id"), "iss") : null,
    statusUri: status && text(status, "uri"),
    statusIndex: status && whole(status, "idx"),
    claims,
  };
}

/** The actors after the root: `act` is the current one and nests those before it. */
function actorsOf(act: object, depth = 1): readonly Actor[] {
  if (depth >= MAX_CHAIN) throw new NotValid("malformed", "too many actors");
  return [...("act" in act ? actorsOf(part(act, "act"), depth + 1) : []), actor(act)];
}

function actor(claims: object): Actor {
  return { sub: text(claims, "sub"), kind: text(claims, "sub_type") };
}
