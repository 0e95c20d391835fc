/** The client: the calls in groups. */
import { UnexpectedAnswer } from "../errors.js";
import { GROUPS } from "../generated/operations.js";
import { type Act, type ApprovalDetail, type Decision, type Waiting, decide, waitForApproval } from "./deciding.js";
import { type ClientOptions, type Outgoing, type Reply, Transport, membersOf, parsed } from "./transport.js";
import type { Groups, Keyed, Named } from "./typing.js";

/** The header by which a balancer may send all events of an agent to one node. */
const ROUTED_BY = "X-Agent-Id";

// The groups are properties that the constructor makes of their table.
export interface Client extends Groups {}

/** A client of the service. Calls have the Python client's names: `client.agents.get(id)`, with the path's values, then
 * body or query, then options; they return an answer's `data`, or all of one that has none, and of a list all rows,
 * newest first. Names and times in answers are as they are sent. Throws: ConfigurationError; calls throw ServiceError,
 * Unreachable, UnexpectedAnswer. */
export class Client {
  readonly transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.transport = new Transport(options);
    for (const [name, operations] of Object.entries(GROUPS)) {
      const methods = Object.entries<Named>(operations).map(([each, named]) => [each, this.#method(named)]);
      Object.defineProperty(this, name, { value: Object.freeze(Object.fromEntries(methods)) });
    }
  }

  /** Ask whether an agent may do something; `approval` is the receipt of an approval of this very act. */
  decide(agentId: string, action: string, act: Act & { readonly approval?: string }): Promise<Decision> {
    return decide(this, agentId, action, act);
  }

  /** Wait until an approval is decided or has expired; after `waitSeconds` it may be pending. */
  waitForApproval(approvalId: string, waiting: Waiting = {}): Promise<ApprovalDetail> {
    return waitForApproval(this, approvalId, waiting);
  }

  #method(named: Named): (...given: unknown[]) => unknown {
    return (...given) => (named.isList ? rows : run)(this.transport, named, given);
  }
}

async function run(transport: Transport, named: Named, given: readonly unknown[]): Promise<unknown> {
  return resultOf(await transport.send(outgoing(named, given)));
}

async function* rows(transport: Transport, named: Named, given: readonly unknown[]): AsyncGenerator<unknown, void, undefined> {
  for (let before: unknown; before !== null; ) {
    const reply = await transport.send(outgoing(named, given, before));
    const { data, next_cursor: cursor } = membersOf(parsed(reply.body));
    const leads = cursor === null || (typeof cursor === "string" && cursor !== before);
    if (!Array.isArray(data) || !leads) throw new UnexpectedAnswer("not a page that leads on");
    yield* data;
    before = cursor;
  }
}

/** Describe the call, of a list for the page `before`. Throws: TypeError for what the call does not take, or a value
 * that would lead to another path. */
function outgoing(named: Named, given: readonly unknown[], before?: unknown): Outgoing {
  const left = [...given];
  const path = named.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, left.shift()));
  const taken = named.takes === undefined ? undefined : left.shift();
  const { idempotencyKey, proof, signal }: Keyed = membersOf(left.shift());
  if (idempotencyKey !== undefined && !named.isKeyed) throw new TypeError("idempotencyKey: this call takes none");
  const body = named.takes === "body" ? taken : undefined;
  const query = named.takes === "query" ? encoded({ ...membersOf(taken), ...(before === undefined ? {} : { before }) }) : "";
  const { agentId } = membersOf(body);
  const kind = named.isForm ? "application/x-www-form-urlencoded" : "application/json";
  return {
    method: named.method.toUpperCase(),
    path: query ? `${path}?${query}` : path,
    content: body === undefined ? null : named.isForm ? encoded(membersOf(body)) : JSON.stringify(body),
    headers: {
      ...(body === undefined ? {} : { "Content-Type": kind }),
      ...(proof === undefined ? {} : { DPoP: proof }),
      ...(typeof agentId === "string" && /^[\x21-\x7e]+$/.test(agentId) ? { [ROUTED_BY]: agentId } : {}),
    },
    key: named.isKeyed ? idempotencyKey || crypto.randomUUID() : undefined,
    isRepeatable: named.method === "get" || (named.isRepeatable === true && !usesReceipt(body)),
    signal,
  };
}

/** Whether an approval's receipt is sent; it is good once, so that a second try would be denied. */
function usesReceipt(body: unknown): boolean {
  const { evaluations } = membersOf(body);
  const asked = [body, ...(Array.isArray(evaluations) ? evaluations : [])];
  return asked.some((each) => Boolean(membersOf(membersOf(each)["context"])["approval"]));
}

/** A value as a segment of a path; a `path` may be several. */
function segment(name: string, value: unknown): string {
  const given = String(value ?? "");
  const segments = name === "path" ? given.split("/") : [given];
  if (segments.some((each) => /^\.{0,2}$/.test(each))) throw new TypeError(`${name}: an empty name, or a name of dots`);
  return segments.map(encodeURIComponent).join("/");
}

function encoded(values: object): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

/** What an answer holds: the `data` of JSON, or all of it; text; else octets. */
function resultOf(reply: Reply): unknown {
  const kind = (reply.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? "";
  if (reply.body.length === 0) return undefined;
  if (!/[/+]json$/.test(kind)) return /^text\/|\+jwt$/.test(kind) ? new TextDecoder().decode(reply.body) : reply.body;
  const value = parsed(reply.body);
  if (value === undefined) throw new UnexpectedAnswer("not JSON");
  const members = membersOf(value);
  return "data" in members ? members["data"] : value;
}
