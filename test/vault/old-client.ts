// Made once with GnuPG, as old clients do: a key on the curve secp256k1, and two messages to it. The key was made for
// these tests and opens nothing else.

export const OLD_KEY = `-----BEGIN PGP PRIVATE KEY BLOCK-----

lHQEawDoxhMFK4EEAAoCAwTS8IhsZp0BAhM5TbklTfu7qeZteZianq2PJqz30wYb
uQK505uo7D4yiiB/G17dPNnug+WR1LSYLxLjOveWfkAgAAEA3W2fPOQ9eu/qyjAy
IkRuVJUDVZ/D6LKB1zKUg5FZnEUQQ7QSc2VjcDI1NmsxIHRlc3Qga2V5iJAEExMI
ADgWIQSoqVHvVObwX45QZ5zIo7wP6QqjlwUCawDoxgIbAwULCQgHAgYVCgkICwIE
FgIDAQIeAQIXgAAKCRDIo7wP6QqjlwOIAQDg8xV59UgL2SNpqYqdQ5v6iYXPcwrg
AkLl9063oEjCJQEA0BAM+lyZmR1ke7gHpsH0ReP5Giw1Rb1GB9ssaJpnW8yceARr
AOjGEgUrgQQACgIDBKaYc5GXs0mYc/qP6y6vn3uUHRWKWFnc+Rj9sOcQBv0OCXcF
atPbgWJVvI/L6YmdwGF0OJKbpoMDmZhHRG+M18MDAQgHAAEA6Ggd9yFVfkU7LdpC
sO+LtO7QHsOLPPfTtHHkqNHV3swTMYh4BBgTCAAgFiEEqKlR71Tm8F+OUGecyKO8
D+kKo5cFAmsA6MYCGwwACgkQyKO8D+kKo5cx6gD8DhpJP+eydcu0T5IaYPLXsY+G
/dNTZmO2yiYy3TTlXtgA/1yhm5lAX8qYfzkog1iNchHu4+LSXe5CcUZRodGSHycw
=Ivyl
-----END PGP PRIVATE KEY BLOCK-----
`

/** `OLD_CARD` under AES-256. */
export const OLD_MESSAGE = `-----BEGIN PGP MESSAGE-----

hH4DZYJL8WgF08ASAgMER1H4ESJRq3adFUokS+q4r2FyvT+SWficVIqwYS5HuRre
NJ28Jf02NG9Jyo96XcC0sVqw77gonS0nfmpwgXhThTBi8muNlnkguq6suzRQuK9j
zusGtrV2zmcdUmolI66OZ+CfbR7OaBPODzI934nY4A3SbgEp0xtP1MfYnv0TXRD4
3eRHYaCmIaDvwXNqf/ZxEeFU1qbx5FUc5vxze0qgWIQMJqePLt7qTlJkLVL8ewy0
+b+83AoZ6+sPfSTsHRosWxdsCIy0uUk8rZI7m8+tXYYulJ/wgIkr+4YZD/yC9uN3
=EVPI
-----END PGP MESSAGE-----
`

export const OLD_CARD = '{"cardNumber":"4111111111111111","captureTime":"2026-01-01T00:00:00Z"}'

/** Under IDEA, as old Android clients wrote. */
export const IDEA_MESSAGE = `-----BEGIN PGP MESSAGE-----

hG4DZYJL8WgF08ASAgMEwt4V4cNNtFbNqCSx3VIl1d9elNFjtDombGwBxOBNQo6o
teMDb5Gz/dKKWAz9mc8gMQX6+OkXAT8xnAw3qGD+ciDNmAfdS2911AL9XcVESVHV
awGTVChKUt4tg9YgBsfiQtJIASLJriZ0OoLM1NjohelAR2TIqicwZwPKDEjycJt2
KE2wAYvH+u7izNImgFB/Gf2KpkQVrER5wNX5yMlQZLttd3qVhfXqaCb4
=KOnm
-----END PGP MESSAGE-----
`
