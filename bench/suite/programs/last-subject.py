from servers.git import git_log
git_log(path="{repo}", maxCount=1)["commits"][0]["subject"]
