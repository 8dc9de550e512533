// An OpenID provider on 127.0.0.1 for the tests of sign-in, with the library's own pages. Who signs in as NAME, with any
// password, is the account NAME.
// Usage: node server.mjs CALLBACK_URL SIGNIN_URL; prints {"issuer": ...} when it answers. A line [NAME, [GROUP, ...]] of
// its input says the groups of an account from then on, a line [NAME, null] removes it; each is answered by {}. Ends with
// its input.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const [back, signin] = process.argv.slice(2);
const groups = new Map();
const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "fairlead",
      client_secret: "a-secret-of-the-tests",
      redirect_uris: [back],
      post_logout_redirect_uris: [signin],
      response_types: ["code"],
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: ["openid", "profile", "email", "groups", "offline_access"],
  // As most providers do: without asking the person, and for longer than its own session.
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed("refresh_token"),
  expiresWithSession: async () => false,
  pkce: { required: () => true },
  cookies: { keys: ["a-key-of-the-tests"] },
  async findAccount(_context, name) {
    if (groups.get(name) === null) return undefined;
    const email = { email: `${name}@example.com`, email_verified: true };
    const claims = { sub: name, preferred_username: name, groups: groups.get(name) ?? [], ...email };
    return { accountId: name, claims: async () => claims };
  },
});
server.on("request", provider.callback());
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  groups.set(...JSON.parse(line));
  process.stdout.write("{}\n");
}
process.exit(0);
