/** The decision on a request: the question to `GET /v1/gateway/authorize`, and what its answer means. */
import { type Reply, Transport, membersOf, parsed } from "../client/transport.js";
import { Unreachable } from "../errors.js";

const PATH = "/v1/gateway/authorize";
const PREFIX = "x-service-";
const SIGNED = ["signature", "signature-input", "signature-agent", "content-digest"];
const CREDENTIALS = ["authorization", "dpop", `${PREFIX}cert-serial`, `${PREFIX}approval`, ...SIGNED];
const PASSED_ON = ["www-authenticate", "dpop-nonce", "accept-signature", "cache-control", `${PREFIX}approval`];
const AWAY = "The authorization service does not answer";

/** A request as it came: `path` as it is sent, with its escapes, `target` with the query as well. */
export type Inbound = Readonly<{
  method: string; scheme: string; host: string; path: string; target: string; headers: Headers;
}>;

/** Who asks, as the service knows it. `chain` has type and name of each actor, from the root to the one that asks.
 * `assurance` says whether the root was verified or is asserted, `credential` what was presented: serial, bearer, dpop
 * or httpsig. */
export type AgentIdentity = Readonly<{
  agentId: string; tenantId: string; principal: string; chain: readonly (readonly [kind: string, name: string])[];
  scope: readonly string[]; action: string; riskBand: string; certSerial: string | null; environment: string;
  assurance: string; credential: string;
}>;

/** The answer in place of the application's. */
export class Refusal {
  constructor(readonly status: number, readonly error: string, readonly headers: readonly (readonly [string, string])[]) {}

  get body(): string {
    return JSON.stringify({ error: this.error });
  }
}

/** `route` names settings that the service keeps. `action` is the action a request needs, or a function that says so;
 * without one, or if the function returns none, the route says it. `excluded` are whole paths, as they are sent, that anyone may
 * ask for.
 * `publicUrl` replaces scheme and host behind a proxy. `allowHttp` sends the key over plain HTTP to other machines. */
export type GateOptions = Readonly<{
  route?: string; action?: string | ((inbound: Inbound) => string | undefined); excluded?: readonly string[];
  publicUrl?: string; timeoutSeconds?: number; allowHttp?: boolean;
}>;

/** Whether a client's header could pass for one of the service's; an underscore counts as a hyphen. */
export function isIdentity(name: string): boolean {
  return name.toLowerCase().replaceAll("_", "-").startsWith(PREFIX);
}

/** The service's decision on requests to one application; without an answer in time the answer is no. */
export class Gate {
  readonly #transport: Transport;
  readonly #key: string;
  readonly #options: GateOptions;

  constructor(baseUrl: string, gatewayKey: string, options: GateOptions = {}) {
    // `Authorization` is the client's; the gateway's own key is in another header.
    this.#transport = new Transport({ timeoutSeconds: 2, ...options, baseUrl, apiKey: null });
    [this.#key, this.#options] = [gatewayKey, options];
  }

  /** Whether anyone may ask for this path. */
  isOpen(path: string): boolean {
    return this.#options.excluded?.includes(path) ?? false;
  }

  async decide(inbound: Inbound): Promise<AgentIdentity | Refusal> {
    const reply = await this.#transport.tryOnce({ method: "GET", path: PATH, headers: this.#question(inbound) });
    return reply instanceof Unreachable ? away() : interpret(reply);
  }

  /** The headers that ask whether a request may pass; of the client's, its credentials are passed on. */
  #question(inbound: Inbound): Record<string, string> {
    const { route, action, publicUrl } = this.#options;
    const [scheme, host] = publicUrl?.replace(/\/+$/, "").split("://") ?? [inbound.scheme, inbound.host];
    const wanted = typeof action === "function" ? action(inbound) : action;
    return {
      ...Object.fromEntries([...inbound.headers].filter(([name]) => CREDENTIALS.includes(name))),
      "X-Service-Gateway-Key": this.#key,
      "X-Forwarded-Method": inbound.method,
      "X-Forwarded-Proto": scheme ?? "",
      "X-Forwarded-Host": host ?? "",
      "X-Forwarded-Uri": inbound.target,
      ...(route ? { "X-Service-Gateway-Route": route } : {}),
      ...(wanted ? { "X-Service-Action": wanted } : {}),
    };
  }
}

/** The service's decision; whatever is neither a yes nor a no is a refusal with 503. */
function interpret(reply: Reply): AgentIdentity | Refusal {
  const { status, headers } = reply;
  const decision = headers.get(`${PREFIX}gateway-decision`);
  if (status === 200 && decision === "allow") return identityOf(headers) ?? away();
  // Without the mark, it is the gateway's own key that is refused.
  if ((status === 401 || status === 403) && decision === "deny") {
    const { error } = membersOf(parsed(reply.body));
    const kept = [...headers].filter(([name]) => PASSED_ON.includes(name));
    return new Refusal(status, typeof error === "string" ? error : "Refused", kept);
  }
  return away(headers.get("retry-after"));
}

/** The refusal when there is no decision. */
function away(retryAfter: string | null = null): Refusal {
  return new Refusal(503, AWAY, [["retry-after", retryAfter ?? "1"]]);
}

/** The identity in the service's headers; none if one is missing. */
function identityOf(headers: Headers): AgentIdentity | undefined {
  const told = (name: string): string => {
    const value = headers.get(PREFIX + name);
    if (value === null) throw new TypeError(name);
    return value;
  };
  const plain = (name: string): string => decodeURIComponent(told(name));
  try {
    return {
      agentId: plain("agent-id"),
      tenantId: plain("tenant-id"),
      principal: plain("principal"),
      chain: [...told("chain").matchAll(/([^=,]+)=([^,]*)/g)].map(([, kind = "", name = ""]) => [kind, decodeURIComponent(name)]),
      scope: told("scope").split(/\s+/).filter(Boolean).map(decodeURIComponent),
      action: plain("action"),
      riskBand: plain("risk-band"),
      certSerial: headers.get(`${PREFIX}cert-serial`) || null,
      environment: plain("environment"),
      assurance: plain("assurance"),
      credential: plain("credential"),
    };
  } catch {
    return undefined;
  }
}
