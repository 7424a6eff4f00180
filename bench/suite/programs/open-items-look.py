from servers.filesystem import list_directory
list_directory("{files}/notes")["content"]
