# An agent that is kept: reads orders, one a line, and does what prompts say.
id=$1
n=0
[ "$id" = leave-at-once ] && exit 0
[ "$id" = slow-start ] || echo ready
while read -r verb a b rest; do
    case $verb in
    open) echo "opened $a ${b:-$id-$a}" ;;
    prompt)
        n=$((n + 1))
        case $rest in
        say\ *)
            echo "text $b ${rest#say }"
            echo "end $b ${rest#say }"
            ;;
        count) echo "end $b $n" ;;
        pid) echo "end $b $$" ;;
        wait) echo "text $b waiting" ;;
        silence) ;;
        stubborn)
            stubborn=yes
            trap '' TERM
            echo "text $b never"
            ;;
        ask\ *) echo "ask $b r$n ${rest#ask }" ;;
        ask-twice)
            echo "ask $b a-$n one"
            echo "ask $b b-$n two"
            ;;
        withdraw)
            echo "ask $b w$n something"
            echo "withdraw $b w$n"
            echo "end $b withdrew"
            ;;
        tool)
            sleep 600 &
            tool=$!
            echo "text $b $tool"
            ;;
        die) kill -KILL $$ ;;
        grumble)
            echo "an old complaint" >&2
            echo "end $b grumbled"
            ;;
        leave)
            echo "some last words" >&2
            exit 7
            ;;
        garbage)
            printf 'no\377thing\n\n{"half":\n'
            echo "end $b still there"
            ;;
        deaf)
            echo "text $b deaf"
            exec 0<&-
            while :; do sleep 600; done
            ;;
        flood)
            i=0
            while [ $i -lt 3000 ]; do
                echo "text $b $i"
                i=$((i + 1))
            done
            echo "end $b flooded"
            : > "$HOME/flooded"
            ;;
        background)
            echo "end $b begun"
            echo "unasked $a"
            echo "utext done in the background"
            ;;
        long-background)
            echo "unasked $a"
            echo "end $b begun"
            sleep 0.3
            echo "utext done in the background"
            ;;
        lost) echo "lost $a" ;;
        hum)
            i=0
            while [ $i -lt 10 ]; do
                echo "working $b"
                sleep 0.5
                i=$((i + 1))
            done
            echo "end $b hummed"
            ;;
        esac
        ;;
    cancel)
        [ -n "$tool" ] && kill $tool 2>/dev/null
        tool=
        [ -n "$stubborn" ] || echo "end $a cancelled"
        ;;
    answer)
        echo "text $a $b $rest"
        case $b in a-*) ;; *) echo "end $a $rest" ;; esac
        ;;
    steer)
        echo "steered $a $b $rest"
        echo "end $a $b $rest"
        ;;
    release) echo "uend $a" ;;
    close) echo "closed $a" >&2 ;;
    esac
done
