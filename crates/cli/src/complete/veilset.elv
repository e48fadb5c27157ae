# Completes veilset in elvish: asks the program.
set edit:completion:arg-completer[veilset] = {|@words|
    var found = [(env VEILSET_COMPLETE=elvish veilset -- $@words 2>/dev/null </dev/null | from-lines)]
    # A tab stands for the names of files.
    if (and (> (count $found) 0) (eq $found[0] "\t")) {
        edit:complete-filename $@words
    } else {
        put $@found
    }
}
