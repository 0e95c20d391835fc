/** An agent's own key: it signs requests (RFC 9421, Web Bot Auth) and assertions for OAuth. */
import { type JWK, SignJWT, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose";

import { ConfigurationError } from "./errors.js";

/** Seconds for which a signature or an assertion counts. */
const LIFE = 60;

/** `signatureAgent` is the https address of the domain with the key directory; `body` is covered by its digest;
 * `legacy` takes the form of earlier drafts, which some verifiers still need. */
export type Signing = Readonly<{
  signatureAgent: string; body?: string | Uint8Array<ArrayBuffer> | undefined; nonce?: string | undefined;
  legacy?: boolean; now?: Date;
}>;

/** An Ed25519 key; registered by `client.agentKeys.register(id, { jwk: key.jwk }, { proof: await key.proof("POST", url) })`. */
export class AgentKey {
  readonly jwk: { kty: "OKP"; crv: "Ed25519"; x: string };
  readonly thumbprint: string;
  readonly #private: CryptoKey;

  private constructor(own: CryptoKey, x: string, thumbprint: string) {
    this.#private = own;
    this.jwk = { kty: "OKP", crv: "Ed25519", x };
    this.thumbprint = thumbprint;
  }

  static async generate(): Promise<AgentKey> {
    const { privateKey } = await generateKeyPair("Ed25519", { extractable: true });
    return AgentKey.fromJwk(await exportJWK(privateKey));
  }

  /** The key of a private JWK. Throws: ConfigurationError for one of another kind. */
  static async fromJwk(jwk: JWK): Promise<AgentKey> {
    const { kty, crv, x, d } = jwk;
    if (kty !== "OKP" || crv !== "Ed25519" || x === undefined || d === undefined) {
      throw new ConfigurationError("not a private Ed25519 key");
    }
    const own = await importJWK({ kty, crv, x, d }, "Ed25519", { extractable: true });
    if (own instanceof Uint8Array) throw new ConfigurationError("not a private Ed25519 key");
    return new AgentKey(own, x, await calculateJwkThumbprint({ kty, crv, x }));
  }

  /** The private JWK, to be kept where nobody else reads it. */
  async exported(): Promise<JWK> {
    return exportJWK(this.#private);
  }

  /** A DPoP proof (RFC 9449) for one request. */
  async proof(method: string, url: string, nonce?: string): Promise<string> {
    const claims = { jti: crypto.randomUUID(), htm: method, htu: url.replace(/[?#].*$/s, ""), ...(nonce ? { nonce } : {}) };
    return new SignJWT(claims).setIssuedAt().setProtectedHeader({ typ: "dpop+jwt", alg: "Ed25519", jwk: this.jwk }).sign(this.#private);
  }

  /** An assertion by which the agent authenticates at a token endpoint (RFC 7523 §2.2). */
  async clientAssertion(did: string, audience: string): Promise<string> {
    const claims = new SignJWT({ jti: crypto.randomUUID() }).setIssuer(did).setSubject(did).setAudience(audience);
    return claims.setIssuedAt().setExpirationTime(`${LIFE}s`).setProtectedHeader({ alg: "Ed25519", kid: this.thumbprint }).sign(this.#private);
  }

  /** The headers that sign one request; they cover method, authority, path, query and body. */
  async headers(method: string, url: string, signing: Signing): Promise<Record<string, string>> {
    const { signatureAgent, body, nonce = crypto.randomUUID(), legacy = false, now = new Date() } = signing;
    const { host, pathname, search } = new URL(url);
    const created = Math.floor(now.getTime() / 1000);
    const found: Record<string, string> = { "Signature-Agent": legacy ? `"${signatureAgent}"` : `sig1="${signatureAgent}"` };
    const covered = new Map([["\"@method\"", method], ["\"@authority\"", host], ["\"@path\"", pathname]]);
    if (search) covered.set("\"@query\"", search);
    covered.set(legacy ? "\"signature-agent\"" : "\"signature-agent\";key=\"sig1\"", `"${signatureAgent}"`);
    if (body !== undefined && body.length > 0) {
      const octets = typeof body === "string" ? new TextEncoder().encode(body) : body;
      const digest = base64(new Uint8Array(await crypto.subtle.digest("SHA-256", octets)));
      covered.set("\"content-digest\"", (found["Content-Digest"] = `sha-256=:${digest}:`));
    }
    const params = `(${[...covered.keys()].join(" ")});created=${created};expires=${created + LIFE}`
      + `;keyid="${this.thumbprint}";alg="ed25519";nonce="${nonce}";tag="web-bot-auth"`;
    const lines = [...covered, ["\"@signature-params\"", params] as const].map(([name, value]) => `${name}: ${value}`);
    const signature = await crypto.subtle.sign("Ed25519", this.#private, new TextEncoder().encode(lines.join("\n")));
    return { ...found, "Signature-Input": `sig1=${params}`, Signature: `sig1=:${base64(new Uint8Array(signature))}:` };
  }
}

/** A `fetch` that signs each request, and tries once more with the nonce that a server asks for (RFC 9421 §5). It
 * takes an address and bodies of text or octets. */
export function signedFetch(key: AgentKey, signatureAgent: string) {
  type Init = Omit<RequestInit, "body"> & { body?: string | Uint8Array<ArrayBuffer> };
  return async (url: string | URL, { body, ...init }: Init = {}): Promise<Response> => {
    const send = async (nonce?: string): Promise<Response> => {
      const headers = new Headers(init.headers);
      const signed = await key.headers(init.method ?? "GET", String(url), { signatureAgent, body, nonce });
      for (const [name, value] of Object.entries(signed)) headers.set(name, value);
      return fetch(url, { ...init, headers, body: body ?? null });
    };
    const answer = await send();
    const [, nonce] = /;nonce="([^"]+)"/.exec(answer.headers.get("accept-signature") ?? "") ?? [];
    return answer.status === 401 && nonce !== undefined ? send(nonce) : answer;
  };
}

function base64(octets: Uint8Array): string {
  return btoa(String.fromCharCode(...octets));
}
