#!/bin/sh
# Mirror one vault with rsync, as `dualwall sync` does, for those who want a one-liner:
#
#   sync_vault.sh ~/Notes ~/.local/share/dualwall/mirror/main
#   sync_vault.sh me@host:Notes ~/.local/share/dualwall/mirror/main --checksum
#
# More options of rsync may follow. The vault is only read. A simple guard stops, and deletes nothing, when the source
# is away, or holds no notes any more, or lost more than 20 notes and more than a fifth (MAX_LOSS=N: up to N may go).
# `dualwall sync` knows more: settings, several vaults, moved folders, a disk that is not mounted.
#
# Exit codes: 0 done, 2 wrong usage, 4 stopped by the guard, 6 the source cannot be reached, else rsync's (23, 24: some
# files could not be read; the rest is done).
set -eu

say() {
    printf 'sync_vault.sh: %s\n' "$1" >&2
}

if [ $# -lt 2 ]; then
    say 'usage: sync_vault.sh SOURCE MIRROR [RSYNC OPTIONS]'
    exit 2
fi
source=${1%/}
mirror=${2%/}
shift 2

case ${source%%/*} in
*:*) ;;
*)
    if [ ! -d "$source/" ]; then
        say "there is no folder $source; is its disk mounted?"
        exit 6
    fi
    mkdir -p "$mirror"
    case "$(cd "$mirror" && pwd -P)/" in
    "$(cd "$source/" && pwd -P)"/*)
        say "the mirror $mirror lies inside the vault $source; keep the two apart"
        exit 2
        ;;
    esac
    case "$(cd "$source/" && pwd -P)/" in
    "$(cd "$mirror" && pwd -P)"/*)
        say "the vault $source lies inside the mirror $mirror; keep the two apart"
        exit 2
        ;;
    esac
    ;;
esac
mkdir -p "$mirror"

set -- \
    --recursive --links --perms --times --omit-dir-times \
    --delete-delay --delete-excluded --safe-links \
    --chmod=Du+rwx,Fu+r,Fa-w --partial-dir=.rsync-partial \
    --8-bit-output --itemize-changes '--out-format=%i|%l|%n' \
    '--filter=+ /.obsidian/' \
    '--filter=+ /.obsidian/app.json' '--filter=+ /.obsidian/daily-notes.json' '--filter=+ /.obsidian/templates.json' \
    '--filter=- /.obsidian/**' \
    '--filter=- .*' \
    "$@"
case $(rsync --version) in
"rsync  version 3."*) set -- --modify-window=-1 "$@" ;; # compare times below a second; openrsync cannot
esac

# Names with line breaks are escaped by rsync, so a line is a file.
count_notes() {
    LC_ALL=C grep -c "$1.*\\.[mM][dD]\$" || true
}
planned=$(LC_ALL=C rsync --dry-run "$@" -- "$source/" "$mirror" 2>&1) || case $? in
23 | 24)
    case $planned in
    *'change_dir "'*'" failed'*)
        say "$source cannot be entered; nothing was deleted"
        exit 6
        ;;
    esac
    ;;
*)
    printf '%s\n' "$planned" >&2
    exit 6
    ;;
esac
gone=$(printf '%s\n' "$planned" | count_notes '^\*deleting ')
new=$(printf '%s\n' "$planned" | count_notes '^>f+')
before=$(find "$mirror/." -name '.?*' -prune -o -type f -name '*.[mM][dD]' -exec printf 'x' \; | wc -c)
removals=$(printf '%s\n' "$planned" | grep -c '^\*deleting ' || true)

if [ "$gone" -gt "${MAX_LOSS:-0}" ]; then
    if [ $((before - gone + new)) -le 0 ]; then
        say "$source holds no notes any more ($before were there). Nothing was deleted. If that is meant: MAX_LOSS=$gone"
        exit 4
    fi
    if [ "$gone" -gt 20 ] && [ $((gone * 5)) -gt "$before" ]; then
        say "$gone of $before notes are gone from $source. Nothing was deleted. If that is meant: MAX_LOSS=$gone"
        exit 4
    fi
fi
# No more than was looked at: what goes from now on may be a disk that is taken out. (openrsync takes 0 for no limit.)
exec rsync "--max-delete=$((removals + 1))" "$@" -- "$source/" "$mirror"
