// A GraphQL server over HTTP: node server.mjs NODE_MODULES. It prints its port. Requests go to /graphql; GET /log returns what was asked.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
const { buildSchema, graphql, GraphQLError } = createRequire(process.argv[2] + '/')('graphql');

const schema = buildSchema(`
  scalar DateTime
  scalar Amount
  enum State { OPEN CLOSED }
  interface Node { id: ID! }
  "A person."
  type User implements Node { id: ID! login: String! secret: String manager: User issues(first: Int!): [Issue!]! }
  type Label { color: String! text: String! }
  "Work to do."
  type Issue implements Node {
    id: ID! title: String! state: State! created: DateTime! points: Int
    author: User! labels: [Label!]! comments(first: Int = 5): CommentConnection!
    old: String @deprecated(reason: "use title")
  }
  type Comment { id: ID! body: String! author: User }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type CommentConnection { nodes: [Comment!]! pageInfo: PageInfo! }
  type IssueEdge { cursor: String! node: Issue! }
  type IssueConnection { totalCount: Int! edges: [IssueEdge!]! pageInfo: PageInfo! }
  union Found = Issue | User
  input IssueFilter { state: State = OPEN text: String and: [IssueFilter!] }
  input NewIssue { title: String! points: Int author: ID clientMutationId: String }
  type IssuePayload { issue: Issue query: Query! clientMutationId: String }
  type Query {
    "The person who asks."
    viewer: User!
    issue(id: ID!): Issue
    issues(first: Int = 10, after: String, filter: IssueFilter): IssueConnection!
    search(text: String!): [Found!]!
    node(id: ID!): Node
    version: String!
    total(min: Int): Amount
    all: Query!
    save: String
  }
  type Mutation {
    createIssue(input: NewIssue!): IssuePayload
    setPoints(id: ID!, points: Int): Issue!
    deleteIssue(id: ID!): Boolean!
    save(text: String!): String!
  }
`);

const ann = { __typename: 'User', id: 'u1', login: 'ann', manager: null, secret: () => { throw new GraphQLError('no right to read secret', { extensions: { code: 'FORBIDDEN' } }); }, issues: ({ first }) => issues.slice(0, first) };
const issues = ['one', 'two', 'three'].map((title, i) => ({
  __typename: 'Issue', id: String(i + 1), title, state: 'OPEN', created: '2026-01-0' + (i + 1), points: i ? i : null, author: ann,
  labels: [{ color: 'red', text: 'bug' }], comments: ({ first }) => ({ nodes: [{ id: 'c' + i, body: 'hello', author: ann }].slice(0, first), pageInfo: { hasNextPage: false } }),
}));
const find = (id) => issues.find((i) => i.id === id) ?? null;
const root = {
  viewer: ann, version: 'v1', total: 12345678901234567890n.toString(), all: () => root, save: 'query',
  issue: ({ id }) => find(id),
  issues: ({ first, filter }) => {
    const found = issues.filter((i) => !filter?.text || i.title.includes(filter.text)).slice(0, first);
    return { totalCount: issues.length, edges: found.map((node) => ({ cursor: node.id, node })), pageInfo: { hasNextPage: false } };
  },
  search: ({ text }) => [...issues.filter((i) => i.title.includes(text)), ann],
  node: ({ id }) => find(id) ?? ann,
  createIssue: ({ input }) => ({ issue: { ...issues[0], id: '9', ...input, author: ann }, clientMutationId: input.clientMutationId, query: root }),
  setPoints: ({ id, points }) => ({ ...find(id), points: points === null ? -1 : points ?? null }),
  deleteIssue: ({ id }) => !!find(id),
};

const log = [];
const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const send = (status, body) => { res.writeHead(status, { 'content-type': 'application/graphql-response+json' }); res.end(JSON.stringify(body)); };
  if (req.url === '/log') return send(200, log);
  if (req.method !== 'POST' || req.headers['content-type'] !== 'application/json') return send(405, { errors: [{ message: 'POST JSON' }] });
  const { query, variables } = JSON.parse(Buffer.concat(chunks));
  log.push({ query, variables, key: req.headers['x-key'] ?? null });
  if (req.headers['x-key'] !== 'k-12345678') return send(401, { errors: [{ message: 'who are you?' }] });
  const answer = await graphql({ schema, source: query, rootValue: { ...root, save: /^\s*mutation/.test(query) ? ({ text }) => 'saved ' + text : 'query' }, variableValues: variables });
  send(answer.data === undefined ? 400 : 200, answer);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
