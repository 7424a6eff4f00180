from servers.filesystem import read_text_file
read_text_file("{files}/hours.txt")["content"]
