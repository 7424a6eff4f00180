import { list_tables, query } from "servers/sqlite";
console.log(await list_tables());
await query({ sql: "SELECT 1 AS n" })
