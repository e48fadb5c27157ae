#compdef veilset
# Completes veilset in zsh: asks the program.
_veilset() {
    local -a found
    found=("${(@f)$(VEILSET_COMPLETE=zsh command veilset -- \
        "${(@)words[1,CURRENT-1]}" "$QIPREFIX$IPREFIX$PREFIX" 2>/dev/null </dev/null)}")
    # A tab stands for the names of files.
    if [[ $found[1] == $'\t' ]]; then
        [[ $PREFIX != --*=* ]] || compset -P '*='
        _files
    elif [[ -n $found[1] ]]; then
        _describe -V veilset found
    fi
}
# The file is a function if zsh loads it from fpath, and a script if it is sourced.
if [[ $funcstack[1] == _veilset ]]; then
    _veilset "$@"
else
    compdef _veilset veilset
fi
