/** The types of calls, derived from those that are generated of the OpenAPI description. */
import type { GROUPS } from "../generated/operations.js";
import type { paths } from "../generated/schema.js";

export type Named = Readonly<{
  method: "get" | "post" | "put" | "patch" | "delete"; path: keyof paths; takes?: "body" | "query";
  isKeyed?: true; isRepeatable?: true; isForm?: true; isList?: true;
}>;

/** What any call may be given; `proof` is a DPoP proof, which is sent once only. */
export type Common = Readonly<{ proof?: string; signal?: AbortSignal | undefined }>;
/** What those with an idempotency key may be given as well: one that replaces the one that is made. */
export type Keyed = Common & Readonly<{ idempotencyKey?: string }>;

type Described<N extends Named> = N["method"] extends keyof paths[N["path"]] ? paths[N["path"]][N["method"]] : never;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Exclude<Q, undefined> : never;
type Body<O> = O extends { requestBody?: infer R } ? Sent<Content<Exclude<R, undefined>>> : never;
type Sent<C> = C[keyof C & (JsonKind | "application/x-www-form-urlencoded")];

type Success<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201 | 202 | 204)] : never;
type Content<S> = S extends { content: infer C } ? C : never;
type JsonKind = "application/json" | `${string}+json`;
type TextKind = `text/${string}` | `${string}+jwt`;
type Read<C> = [C] extends [never]
  ? undefined
  : keyof C & JsonKind extends never
    ? { [K in keyof C]: K extends TextKind ? string : Uint8Array<ArrayBuffer> }[keyof C]
    : C[keyof C & JsonKind];

/** An answer's `data`, or all of an answer that has none. */
type Result<B> = B extends { data: infer D } ? D : B;
type Row<B> = B extends { data: readonly (infer R)[]; next_cursor: unknown } ? R : never;

type Placed<P extends string> = P extends `${string}{${string}}${infer Rest}` ? [string, ...Placed<Rest>] : [];
type Taken<N extends Named> = N extends { takes: "body" } ? Body<Described<N>> : N extends { takes: "query" } ? Query<Described<N>> : never;
type Given<T, C> = [T] extends [never] ? [options?: C] : Partial<T> extends T ? [given?: T, options?: C] : [given: T, options?: C];

/** A call with the values of its path, then its body or query, then options. */
export type Operation<N extends Named> = (
  ...given: [...path: Placed<N["path"]>, ...rest: Given<Taken<N>, N extends { isKeyed: true } ? Keyed : Common>]
) => N extends { isList: true }
  ? AsyncGenerator<Row<Read<Content<Success<Described<N>>>>>, void, undefined>
  : Promise<Result<Read<Content<Success<Described<N>>>>>>;

type Entry<T> = T extends Named ? Operation<T> : never;
/** Each operation in its group, under the name that it has in the Python client. */
export type Groups = {
  readonly [G in keyof typeof GROUPS]: { readonly [N in keyof (typeof GROUPS)[G]]: Entry<(typeof GROUPS)[G][N]> };
};
