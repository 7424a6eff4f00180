from servers.memory import open_nodes
open_nodes(["svc-mail-10"])
