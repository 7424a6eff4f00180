// What a program can import as "sallyport": calls of tools, and helpers around
// them. The guest's bootstrap provides them; here they get their types.

/** Binary content of a result. */
export interface Blob {
  readonly data: Uint8Array;
  readonly mime: string;
  readonly uri: string;
  readonly name: string;
}

/** A tool call that failed: `kind` says how, `tool` which, `hint` what would be right. */
export interface ToolError extends Error {
  readonly kind: string;
  readonly tool: string;
  readonly hint: string;
}

/** How far a call is: `progress` of `total`, if that is known. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message: string;
  readonly tool: string;
}

interface Runtime {
  progress(listener: (p: Progress) => unknown, body: () => any): any;
  call(tool: string, args?: object, spec?: string): Promise<any>;
  parallel(...thunks: any[]): Promise<any[]>;
  iterate(wrapper: any, args?: object, options?: object): any;
  ToolError: new (message: string, kind?: string, tool?: string, hint?: string) => ToolError;
  Blob: new (data: Uint8Array, mime?: string, uri?: string, name?: string) => Blob;
}

const runtime: Runtime = (globalThis as any)[Symbol.for("sallyport")];

/** Calls the tool with id "upstream.name"; the wrappers under "servers" are the usual way in, and hand over what is known of it as `spec`. */
export function call<T = any>(tool: string, args: object = {}, spec?: string): Promise<T> {
  return runtime.call(tool, args, spec);
}

/** Runs functions at once and returns their results in order: parallel(() => a(1), () => b(2)). */
export function parallel<T = any>(...thunks: (Array<() => T | Promise<T>> | (() => T | Promise<T>))[]): Promise<T[]> {
  return runtime.parallel(...thunks);
}

/** Hears how far the calls are that body makes: await progress((p) => console.log(p.progress, p.total), () => f({ ... })). */
export async function progress<T>(listener: (p: Progress) => unknown, body: () => T | Promise<T>): Promise<T> {
  return runtime.progress(listener, body);
}

/** What one finds on a page of results of type R: the element of the list in it. */
export type Item<R> = 0 extends 1 & R ? any : R extends readonly (infer T)[] ? T : ItemOf<Extract<R, object>>;
type ItemOf<R> = [Lists<R>] extends [never] ? any : Lists<R>;
type Lists<R> = R extends object ? { [K in keyof R]: NonNullable<R[K]> extends readonly (infer T)[] ? T : never }[keyof R] : never;

/** The items of all pages: for await (const issue of iterate(list_issues, { owner, repo })). Pages are asked for as they are needed. */
export function iterate<A extends object, R>(wrapper: (args: A) => Promise<R>, args?: A, options?: { max_items?: number }): AsyncIterable<Item<R>> {
  return runtime.iterate(wrapper, args, options);
}

export const ToolError = runtime.ToolError;
export const Blob = runtime.Blob;
