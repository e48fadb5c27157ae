# Completes veilset in bash: asks the program.
_veilset() {
    local IFS=' ' word line=${COMP_LINE:0:COMP_POINT} replaced=${2-${COMP_WORDS[COMP_CWORD]}}
    # Other functions may call this one with words only.
    [[ -n $line ]] || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(VEILSET_COMPLETE=bash command veilset -- "$line" "$replaced" 2>/dev/null </dev/null)
    # A tab stands for the names of files.
    if [[ ${COMPREPLY[0]-} == $'\t' ]]; then
        COMPREPLY=()
        compopt -o default 2>/dev/null
    fi
    return 0
}
# Columns are offered in the order of the file, which older versions cannot.
complete -o nosort -o bashdefault -F _veilset veilset 2>/dev/null || complete -o bashdefault -F _veilset veilset
