# shellcheck shell=bash
# Sourced by build-env.sh: checks the arguments of a script before it installs or builds anything.
# The comment at the top of a script is its help, and lists its options.

usage() {
    sed -n '2,/^[^#]/s/^# \?//p' "$0"
}

# refuse WHY: ends the script with the exit code for wrong arguments.
refuse() {
    printf 'error: %s\n' "$1" >&2
    usage >&2
    exit 2
}

# accept ARGUMENT...: prints the help if it is requested. Refuses options that the help does not
# list. A word that is no option must follow one, unless the help has "[FILE...]".
accept() {
    local argument help before=
    help=$(usage)
    for argument in "$@"; do
        case $argument in
            --help | -h) usage; exit 0 ;;
            --) return 0 ;;
            -*) [[ $help =~ (^|[^a-z-])"${argument%%=*}"([^a-z-]|$) ]] && before=$argument && continue ;;
            *) [[ $before == -* || $help == *"[FILE...]"* ]] && continue ;;
        esac
        refuse "scripts/${0##*/} does not know \"$argument\""
    done
}

# choose PARTS ARGUMENT...: reads --only NAME,... with names from PARTS; without arguments, all of
# them are wanted.
choose() {
    local all=" $1 " name names=()
    chosen=$all
    shift
    [ $# != 0 ] || return 0
    case "$1 $#" in
        "--only 2")
            IFS=, read -ra names <<<"$2"
            chosen=" ${names[*]} "
            ;;
        "--help 1" | "-h 1") usage; exit 0 ;;
    esac
    [ ${#names[@]} != 0 ] || refuse "scripts/${0##*/} does not know \"$*\""
    for name in "${names[@]}"; do
        [[ -n $name && $all == *" $name "* ]] || refuse "scripts/${0##*/} does not know \"$*\""
    done
}

# wanted PART
wanted() {
    [[ $chosen == *" $1 "* ]]
}
