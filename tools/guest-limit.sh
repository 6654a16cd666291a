# Sourced by the tools that boot a machine.

# until_ended PID FILE SECONDS: wait until the process has ended; 124 where FILE, to which its output
# goes, did not change for so many seconds. A busy machine is slow, but something goes on.
until_ended() {
    local pid=$1 output=$2 limit=$3 deadline
    local seen=$output.seen # as new as the output was when it was looked at
    : >"$seen"
    deadline=$((SECONDS + limit))
    while kill -0 "$pid" 2>/dev/null; do
        if [[ $output -nt $seen ]]; then
            touch -r "$output" "$seen"
            deadline=$((SECONDS + limit))
        elif ((SECONDS >= deadline)); then
            return 124
        fi
        sleep 0.2
    done
}
