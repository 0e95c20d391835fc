/** One call carried out: what is sent, and when it is tried again. */
import { ConfigurationError, Conflict, type ServiceError, UnexpectedAnswer, Unreachable, isPassing, kindFor } from "../errors.js";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const LONGEST_MESSAGE = 500;

/** How often and how long to try: `totalSeconds` bounds the waits, `firstWaitSeconds` doubles with each try. */
export type Retries = Readonly<{ tries: number; firstWaitSeconds: number; longestWaitSeconds: number; totalSeconds: number }>;

/** Where the service is, and as whom to call it; address and key are else those of `AGENTID_BASE_URL` and
 * `AGENTID_API_KEY`, and a key of null is none. `timeoutSeconds` bounds each try; `allowHttp` sends the key over plain
 * HTTP to other machines. */
export type ClientOptions = Readonly<{
  baseUrl?: string; apiKey?: string | null; timeoutSeconds?: number; retries?: Partial<Retries>; allowHttp?: boolean;
}>;

/** A call of one endpoint; it is tried again if it has a `key` (Idempotency-Key) or `isRepeatable`. */
export type Outgoing = Readonly<{
  method: string; path: string; headers: Readonly<Record<string, string>>; content?: string | null;
  key?: string | undefined; isRepeatable?: boolean; signal?: AbortSignal | undefined;
}>;

/** An answer that has been received whole. */
export type Reply = Readonly<{ status: number; headers: Headers; body: Uint8Array<ArrayBuffer> }>;

/** Carries requests out, and tries again those that may be repeated. Throws: ConfigurationError. */
export class Transport {
  readonly baseUrl: string;
  readonly timeoutSeconds: number;
  readonly retries: Retries;
  readonly #apiKey: string | null | undefined;

  constructor(options: ClientOptions) {
    const { baseUrl = variable("AGENTID_BASE_URL"), apiKey = variable("AGENTID_API_KEY"), timeoutSeconds = 10 } = options;
    this.baseUrl = checkedUrl(baseUrl, options.allowHttp ?? false);
    if (apiKey && !/^[\x21-\x7e]+$/.test(apiKey)) throw new ConfigurationError("apiKey: not an API key");
    this.#apiKey = apiKey;
    this.timeoutSeconds = timeoutSeconds;
    const usual = { tries: 5, firstWaitSeconds: 0.2, longestWaitSeconds: 20, totalSeconds: 60 };
    this.retries = { ...usual, ...options.retries };
  }

  /** Carry one call to its end. Throws: ServiceError, Unreachable, UnexpectedAnswer, the signal's reason. */
  async send(request: Outgoing): Promise<Reply> {
    const started = performance.now();
    // A proof that was given ready-made counts once only.
    const mayRepeat = (request.isRepeatable || request.key !== undefined) && !("DPoP" in request.headers);
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.tryOnce(request);
      if (!(reply instanceof Unreachable) && reply.status >= 200 && reply.status < 300) return reply;
      const error = reply instanceof Unreachable ? reply : failure(reply);
      const wait = waitOf(error, attempt, this.retries);
      const spent = (performance.now() - started) / 1000;
      const isLast = attempt >= this.retries.tries || spent + wait > this.retries.totalSeconds;
      // An earlier try with the same key may still be at work.
      const isOwn = request.key !== undefined && error instanceof Conflict && error.retryAfter !== undefined;
      if (isLast || !mayRepeat || !(isOwn || isPassing(error))) throw error;
      await pause(wait, request.signal);
    }
  }

  /** Send a request once. Throws: the signal's reason. */
  async tryOnce(request: Outgoing): Promise<Reply | Unreachable> {
    const { method, signal } = request;
    signal?.throwIfAborted();
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    signal?.addEventListener("abort", stop);
    const timer = setTimeout(stop, milliseconds(this.timeoutSeconds));
    const own = { ...(this.#apiKey ? { Authorization: `Bearer ${this.#apiKey}` } : {}), ...(request.key ? { "Idempotency-Key": request.key } : {}) };
    try {
      const headers = { ...own, ...request.headers };
      const how = { method, headers, body: request.content ?? null, redirect: "manual", signal: stopping.signal } as const;
      const answer = await fetch(this.baseUrl + request.path, how);
      return { status: answer.status, headers: answer.headers, body: new Uint8Array(await answer.arrayBuffer()) };
    } catch (error) {
      signal?.throwIfAborted();
      const isLate = stopping.signal.aborted;
      return new Unreachable(isLate ? `no answer within ${this.timeoutSeconds} s` : String(error), { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }
}

/** For `setTimeout`, which takes more than its longest time for none. */
export function milliseconds(seconds: number): number {
  return Math.min(seconds * 1000, 2 ** 31 - 1);
}

/** Wait; a signal ends it early, with its reason. */
export async function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, milliseconds(seconds));
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    }
    signal?.addEventListener("abort", end);
  });
  signal?.throwIfAborted();
}

/** A JSON text's value; undefined for what is none. */
export function parsed(octets: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(octets));
  } catch {
    return undefined;
  }
}

/** An object's members; none of anything else. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** The error for an answer that is no success. Throws: UnexpectedAnswer for a redirect. */
function failure(reply: Reply): ServiceError {
  if (reply.status < 400) throw new UnexpectedAnswer(`${reply.status}: redirects are not followed; correct the base URL`);
  const body = membersOf(parsed(reply.body));
  const [error, described] = [body["error"], body["error_description"]].map((each) => (typeof each === "string" ? each : undefined));
  const message = (described ?? error ?? `HTTP ${reply.status}`).slice(0, LONGEST_MESSAGE);
  // OAuth has a code beside words for people.
  const code = described === undefined ? undefined : error;
  const requestId = reply.headers.get("x-request-id") ?? undefined;
  return new (kindFor(reply.status))(reply.status, message, code, retryAfter(reply.headers), requestId);
}

/** Seconds to wait, of a number or a date (RFC 9110 §10.2.3). */
export function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after") ?? "";
  if (/^[0-9]+$/.test(value)) return Number(value.slice(0, 10));
  const moment = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(moment) ? undefined : Math.max((moment - Date.now()) / 1000, 0);
}

/** What the service asks for, or a random part of a wait that doubles, and at least half of it. */
function waitOf(error: ServiceError | Unreachable, attempt: number, retries: Retries): number {
  if (!(error instanceof Unreachable) && error.retryAfter !== undefined) return error.retryAfter;
  const ceiling = Math.min(retries.firstWaitSeconds * 2 ** (attempt - 1), retries.longestWaitSeconds);
  return ceiling * (0.5 + Math.random() / 2);
}

/** The base URL without a slash at its end. Throws: ConfigurationError. */
export function checkedUrl(given: string | undefined, allowHttp: boolean): string {
  if (given === undefined || !URL.canParse(given)) throw new ConfigurationError("baseUrl: a URL, or set AGENTID_BASE_URL");
  const { protocol, hostname, username, password, search, hash } = new URL(given);
  const isSafe = protocol === "https:" || (protocol === "http:" && (allowHttp || LOOPBACK.includes(hostname)));
  if (!isSafe || username || password || search || hash) {
    throw new ConfigurationError("baseUrl: https://, or http:// to this machine, and nothing but a path");
  }
  return given.replace(/\/+$/, "");
}

function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
