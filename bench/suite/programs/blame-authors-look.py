from servers.filesystem import list_directory
list_directory("{repo}/src")["content"]
