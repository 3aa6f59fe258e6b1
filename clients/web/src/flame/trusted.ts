// The page's only trusted types policy. It lets the worker's own file through and nothing else.

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;

const policy = types?.createPolicy("hearth", {
  createScriptURL(url) {
    if (new URL(url, location.href).origin !== location.origin) {
      throw new TypeError("scripts come from this server only");
    }
    return url;
  },
});

/** The address in the form that the constructor of Worker takes under trusted types. */
export function workerUrl(url: string): string {
  return policy ? policy.createScriptURL(url) : url;
}
