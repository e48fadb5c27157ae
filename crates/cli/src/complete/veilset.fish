# Completes veilset in fish: asks the program.
function __veilset_ask
    set -l word (commandline --current-token --cut-at-cursor)
    VEILSET_COMPLETE=fish command veilset -- (commandline -opc) "$word" 2>/dev/null </dev/null
end
# A tab stands for the names of files.
function __veilset_files
    set -l found (__veilset_ask)
    test "$found" = \t
end
complete --command veilset --no-files --keep-order --arguments '(__veilset_ask | string match --invert \t)'
complete --command veilset --condition __veilset_files --force-files
