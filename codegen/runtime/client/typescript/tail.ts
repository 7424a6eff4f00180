
/** Sets the gateway. Defaults: SALLYPORT_URL (or http://127.0.0.1:8080) and SALLYPORT_TOKEN. */
export const connect: (gateway?: { url?: string; token?: string }) => void = (runtime as any).connect;
