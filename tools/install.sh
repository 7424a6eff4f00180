#!/bin/sh
# install.sh BIN DIR: puts sallyport and runsc of the folder BIN below DIR, with manual pages and completions.
set -e
bin=$1 to=$2
share=$to/share
install -d "$to/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
install -m 755 "$bin/sallyport" "$bin/runsc" "$to/bin"
"$bin/sallyport" man "$share/man/man1"
"$bin/sallyport" completion bash >"$share/bash-completion/completions/sallyport"
"$bin/sallyport" completion zsh >"$share/zsh/site-functions/_sallyport"
"$bin/sallyport" completion fish >"$share/fish/vendor_completions.d/sallyport.fish"
echo "installed in $to: bin/sallyport, bin/runsc, manual pages, completions for bash, zsh and fish"
