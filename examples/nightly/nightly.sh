#!/bin/sh
# A release every night: silent where all went well, a sentence where it did not. Whatever happens, what stands under the
# target's name was checked: a job that fails leaves the last release in its place.
#     nightly.sh policy.toml
policy=${1:?which policy?}
duckanon release "$policy"
case $? in
0) ;;
1) echo "$policy: a promise is broken, nothing new was released. Yesterday's file is still there." ; exit 1 ;;
2) echo "$policy: the policy does not fit the table any more. Has a column come or gone?" ; exit 2 ;;
3) echo "$policy: a file could not be read or written. It is tried again tomorrow." ; exit 3 ;;
*) echo "$policy: the job was stopped. It is tried again tomorrow." ; exit 4 ;;
esac
