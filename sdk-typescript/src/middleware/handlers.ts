/** Protects Express applications, and handlers of the Fetch API: Deno, Bun, Workers, Next.js, Hono. */
import { type AgentIdentity, type Gate, type Inbound, Refusal, isIdentity } from "./gate.js";

/** What is used of Express's request. */
export interface ExpressRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly protocol: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly headersDistinct?: Record<string, string[] | undefined>;
  readonly rawHeaders: string[];
  agent?: AgentIdentity | null;
}

/** What is used of Express's response. */
export interface ExpressResponse {
  statusCode: number;
  appendHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

type Next = (error?: unknown) => void;

/** Middleware that lets requests through that the service allows: `app.use(expressGate(gate))`, before all that reads
 * the request. `req.agent` says who asks; on excluded paths it is null. */
export function expressGate(gate: Gate): (request: ExpressRequest, response: ExpressResponse, next: Next) => Promise<void> {
  return async (request, response, next) => {
    try {
      const inbound = inboundOf(request);
      strip(request);
      const decision = gate.isOpen(inbound.path) ? null : await gate.decide(inbound);
      if (decision instanceof Refusal) {
        response.statusCode = decision.status;
        response.appendHeader("content-type", "application/json");
        decision.headers.forEach(([name, value]) => response.appendHeader(name, value));
        response.end(decision.body);
        return;
      }
      request.agent = decision;
    } catch (error) {
      return next(error);
    }
    next();
  };
}

function inboundOf(request: ExpressRequest): Inbound {
  const headers = new Headers();
  for (let place = 0; place < request.rawHeaders.length; place += 2) {
    headers.append(request.rawHeaders[place] ?? "", request.rawHeaders[place + 1] ?? "");
  }
  const { method, protocol: scheme, originalUrl: target } = request;
  return { method, scheme, host: headers.get("host") ?? "", path: target.split("?", 1)[0] ?? "", target, headers };
}

/** Take out of the request what could pass for the service's headers. */
function strip({ headers, headersDistinct = {}, rawHeaders }: ExpressRequest): void {
  // Node makes both views of the raw headers when they are first read, so those are read, and changed, before.
  for (const view of [headers, headersDistinct]) {
    for (const name of Object.keys(view).filter(isIdentity)) delete view[name];
  }
  const kept = rawHeaders.filter((_, place) => !isIdentity(rawHeaders[place - (place % 2)] ?? ""));
  rawHeaders.splice(0, rawHeaders.length, ...kept);
}

/** A handler that lets requests through that the service allows. `handler` receives the request, who asks (null on
 * excluded paths), and what else the platform passes. */
export function fetchGate<More extends readonly unknown[]>(
  gate: Gate,
  handler: (request: Request, agent: AgentIdentity | null, ...more: More) => Response | Promise<Response>,
): (request: Request, ...more: More) => Promise<Response> {
  return async (request, ...more) => {
    const { protocol, host, pathname, search } = new URL(request.url);
    const decision = gate.isOpen(pathname)
      ? null
      : await gate.decide({
          method: request.method,
          scheme: protocol.slice(0, -1),
          host,
          path: pathname,
          target: pathname + search,
          headers: request.headers,
        });
    if (decision instanceof Refusal) {
      const headers = new Headers({ "content-type": "application/json" });
      decision.headers.forEach(([name, value]) => headers.append(name, value));
      return new Response(decision.body, { status: decision.status, headers });
    }
    const headers = new Headers([...request.headers].filter(([name]) => !isIdentity(name)));
    return handler(new Request(request, { headers }), decision, ...more);
  };
}
