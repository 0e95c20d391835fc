/** What the service signs as a JWT, checked with its public keys: offline but for the keys. */
import { type JSONWebKeySet, type JWTPayload, type JWTVerifyGetKey, createLocalJWKSet, createRemoteJWKSet } from "jose";
import { errors, jwtVerify } from "jose";

import { checkedUrl } from "../client/transport.js";
import { AgentIdError, NotValid, type Reason, Unreachable } from "../errors.js";

/** The service's public keys, of `givenKeys` or `fetchedKeys`. */
export type Keys = JWTVerifyGetKey;

/** Who must have signed: the `issuer` that is pinned, in this environment (live). */
export type Origin = Readonly<{ keys: Keys; issuer: string; environment?: "live" | "test"; now?: Date }>;

const REASONS: Readonly<Record<string, Reason>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: "unsupported_algorithm",
  ERR_JWKS_NO_MATCHING_KEY: "unknown_key",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "unknown_key",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "invalid_signature",
  ERR_JWT_EXPIRED: "expired",
  ERR_JWS_INVALID: "malformed",
  ERR_JWT_INVALID: "malformed",
  ERR_JOSE_NOT_SUPPORTED: "malformed",
};
const CLAIMS: Readonly<Record<string, Reason>> = { iss: "invalid_issuer", nbf: "not_yet_valid" };

/** The keys of a JWKS that is at hand, as `client.delegation.jwks()` gives it. */
export function givenKeys(jwks: { readonly keys: readonly object[] }): Keys {
  return createLocalJWKSet(jwks as unknown as JSONWebKeySet);
}

/** The service's keys, fetched when they are needed: after ten minutes, and for an unknown one. Throws:
 * ConfigurationError for a URL that is neither https:// nor this machine's. */
export function fetchedKeys(baseUrl: string, environment: "live" | "test" = "live"): Keys {
  const url = new URL(`${checkedUrl(baseUrl, false)}/.well-known/jwks.json?environment=${environment}`);
  return createRemoteJWKSet(url, { cacheMaxAge: 600_000, cooldownDuration: 30_000 });
}

/** The claims of a JWT of this type. Throws: NotValid; Unreachable if the keys cannot be had. */
export async function claimsOf(jwt: string, typ: string, origin: Origin, skewSeconds = 0): Promise<JWTPayload> {
  const { keys, issuer, environment, now = new Date() } = origin;
  const rules = { algorithms: ["ES256"], typ, issuer, currentDate: now, clockTolerance: skewSeconds };
  const { payload } = await jwtVerify(jwt, keys, rules).catch((error: unknown) => {
    throw failureOf(error);
  });
  const isOther = environment !== undefined && payload["env"] !== environment;
  if (isOther) throw new NotValid("wrong_environment", `of ${String(payload["env"])}`);
  return payload;
}

/** What a failure of jose means. */
export function failureOf(error: unknown): AgentIdError {
  if (error instanceof errors.JWTClaimValidationFailed) return new NotValid(CLAIMS[error.claim] ?? "malformed", error.message);
  const reason = error instanceof errors.JOSEError ? REASONS[error.code] : undefined;
  if (reason !== undefined) return new NotValid(reason, String((error as Error).message));
  return new Unreachable("the service's keys cannot be had", { cause: error });
}

/** A claim that is text. Throws: NotValid (malformed). */
export function text(claims: object, name: string): string {
  const value: unknown = Reflect.get(claims, name);
  if (typeof value !== "string") throw new NotValid("malformed", `${name} is missing or of another kind`);
  return value;
}

/** A claim that is a whole number, not negative. Throws: NotValid (malformed). */
export function whole(claims: object, name: string): number {
  const value: unknown = Reflect.get(claims, name);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new NotValid("malformed", `${name} is missing or of another kind`);
}

/** A claim that is an object. Throws: NotValid (malformed). */
export function part(claims: object, name: string): object {
  const value: unknown = Reflect.get(claims, name);
  if (typeof value !== "object" || value === null) throw new NotValid("malformed", `${name} is not an object`);
  return value;
}
