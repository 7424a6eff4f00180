import { list_tables } from "servers/sqlite";
await list_tables()
