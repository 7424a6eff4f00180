// The module "sallyport" of plugins.
interface Host {
  secret(name: string): string;
  fetch(request: object): Promise<{ status: number; headers: Record<string, string>; body: string }>;
}

const host = (globalThis as any)[Symbol.for("sallyport.plugin")] as Host;

/** The answer of fetch. */
export interface Response {
  status: number;
  headers: Record<string, string>;
  text: string;
  json(): any;
}

/** Requests an https URL of a granted host. */
export async function fetch(url: string, options: { method?: string; headers?: Record<string, string>; body?: any } = {}): Promise<Response> {
  const body = options.body === undefined || typeof options.body === "string" ? (options.body ?? null) : JSON.stringify(options.body);
  const found = await host.fetch({ url, method: options.method ?? "GET", headers: options.headers ?? {}, body });
  return { status: found.status, headers: found.headers, text: found.body, json: () => JSON.parse(found.body) };
}

/** Returns a granted secret. */
export function secret(name: string): string {
  return host.secret(name);
}
