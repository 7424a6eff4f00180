from servers.git import git_branch, git_log

repo = "{repo}"
last = git_log(path=repo, file_path="src/pay.txt", max_count=1)["commits"][0]
git_branch(path=repo, mode="create", branchName="hotfix-pay", startPoint=last["hash"])
last["subject"]
