/** DPoP proofs (RFC 9449 §4.3): that who presents a token holds the key it is bound to. */
import { EmbeddedJWK, base64url, calculateJwkThumbprint, jwtVerify } from "jose";

import { NotValid } from "../errors.js";
import { sha256 } from "./canonical.js";
import { failureOf, text, whole } from "./jwt.js";

/** A proof with the request it came with. `isNew` is asked once with the proof's key and `jti`, and must refuse what
 * it was asked before within `maxAgeSeconds`; without it a replay goes unnoticed. */
export type PresentedProof = Readonly<{
  text: string; method: string; url: string; nonce?: string; maxAgeSeconds?: number;
  isNew?: (thumbprint: string, jti: string) => boolean | Promise<boolean>;
}>;

/** Check a proof and return the thumbprint of its key. Throws: NotValid. */
export async function verifyProof(proof: PresentedProof, accessToken: string | null, now = new Date()): Promise<string> {
  const { method, url, nonce, maxAgeSeconds = 60, isNew = () => true } = proof;
  const rules = { algorithms: ["ES256"], typ: "dpop+jwt", currentDate: now };
  const { payload, protectedHeader } = await jwtVerify(proof.text, EmbeddedJWK, rules).catch((error: unknown) => {
    const found = failureOf(error);
    throw found instanceof NotValid ? found : new NotValid("malformed", "jwk is not a public key");
  });
  if (payload["htm"] !== method || !isSame(payload["htu"], url)) {
    throw new NotValid("wrong_request", "the proof is for another method or address");
  }
  const age = now.getTime() / 1000 - whole(payload, "iat");
  if (age < -maxAgeSeconds) throw new NotValid("not_yet_valid", "the proof is from the future");
  if (age > maxAgeSeconds) throw new NotValid("expired", "the proof is too old");
  if (nonce !== undefined && payload["nonce"] !== nonce) throw new NotValid("wrong_nonce");
  if (accessToken !== null) {
    const hash = base64url.encode(await sha256(new TextEncoder().encode(accessToken)));
    if (payload["ath"] !== hash) throw new NotValid("wrong_token", "the proof is for another token");
  }
  const holder = await calculateJwkThumbprint(protectedHeader.jwk ?? {});
  if (!(await isNew(holder, text(payload, "jti")))) throw new NotValid("expired", "the proof was used before");
  return holder;
}

/** Whether two addresses are the same without query and fragment (§4.2). */
function isSame(claimed: unknown, url: string): boolean {
  const [one, other] = [String(claimed), url].map((each) => (URL.canParse(each) ? new URL(each) : undefined));
  return one !== undefined && one.origin === other?.origin && one.pathname === other.pathname;
}
