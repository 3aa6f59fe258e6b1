// provider.mjs PORT REDIRECT_URL -- oidc-provider with its own log-in pages, which take any password; one client for people and
// one for machines, whose access tokens are JWTs for the resource urn:hearth.
import Provider from "oidc-provider";

const [port, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [
    { client_id: "hearth-web", client_secret: "a secret of the web client", redirect_uris: [redirect] },
    {
      client_id: "robot", client_secret: "a secret of the robot", grant_types: ["client_credentials"],
      redirect_uris: [], response_types: [],
    },
  ],
  claims: { openid: ["sub"], profile: ["groups"] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: ["sre"] }) }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "urn:hearth",
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: "", audience: "hearth", accessTokenFormat: "jwt" }),
    },
  },
  cookies: { keys: ["only for this test"] },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
