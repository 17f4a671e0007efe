// What docs/security.md says that somebody can't do: each such sentence has tests, or a reason why none is possible. So the
// page and the tests can't part.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './tree.ts'

const PAGE = readFileSync(join(root, 'docs/security.md'), 'utf8')

interface Promised {
  /** Words of the sentence, which stand in the page once. */
  says: string
  /** Files and the titles of tests in them. */
  tests: readonly [file: string, title: string][]
}

const PROMISES: readonly Promised[] = [
  {
    says: "can't steer an operator's terminal, and can't make a line of its own",
    tests: [
      ['test/cli/hostile-text.test.ts', 'a command shows no raw text'],
      ['test/cli/hostile-text.test.ts', 'a log shows no raw text of a webhook’s receiver, or of a provider: %s'],
      ['test/cli/terminal.test.ts', 'says and prints a value on one line, without what a terminal obeys'],
    ],
  },
  {
    says: "which can't take on any role that reads cards",
    tests: [
      [
        'test/cli/schema-login.test.ts',
        'of the gateway is a member of its role, sees no card, and may become nobody who does',
      ],
    ],
  },
  {
    says: "The user can't add clients, their keys, scopes or a key-encryption key",
    tests: [['test/store/worker-rights.test.ts', 'adds nobody and nothing that grants rights, and confirms no act']],
  },
  {
    says: "The user can't change the public half of a capture key, and can't destroy a data key",
    tests: [['test/store/worker-rights.test.ts', 'adds nobody and nothing that grants rights, and confirms no act']],
  },
  {
    says: "can't rewrite what the audit says of the time before",
    tests: [
      ['test/store/worker-rights.test.ts', 'adds to the audit and numbers rows once, and changes or removes none'],
    ],
  },
  {
    says: "**The gateway** has no KEK and can't decrypt cards",
    tests: [
      [
        'test/security/roles.test.ts',
        'that only reads sees no sealed card, no fingerprint and no key, and writes nothing',
      ],
      [
        'test/cli/schema-login.test.ts',
        'of the gateway is a member of its role, sees no card, and may become nobody who does',
      ],
    ],
  },
  {
    says: "whoever reads them can't make another passkey of the invite",
    tests: [
      [
        'test/workers/act/people-acts.test.ts',
        'invites with a key that a browser made, and only the link with its secret lets somebody in',
      ],
    ],
  },
  {
    says: "can't sign in by that alone",
    tests: [
      [
        'test/producers/console/openid/sign-in.test.ts',
        'uses a flow once, in the browser that began it, and with its state',
      ],
    ],
  },
  {
    says: "can't make workers believe in a new client, a further role, another key, or another entity of a scope",
    tests: [
      ['test/security/owner.test.ts', 'by an UPDATE of one column grants nothing that was not granted before'],
      ['test/security/owner.test.ts', 'by an INSERT of a copy under another key grants nothing'],
      [
        'test/producers/gateway/server/database-owner.test.ts',
        "can't have the tokens of a scope shown to another entity",
      ],
    ],
  },
  {
    says: "can't have a look-up post a card to a server of their choice or on another account",
    tests: [
      [
        'test/producers/gateway/three-ds/contract-code.test.ts',
        'a contract that was given to another entity, or minted, is as one that does not exist',
      ],
    ],
  },
  {
    says: "can't have an event sent to another URL",
    tests: [
      [
        'test/workers/webhook/endpoint-code.test.ts',
        'to an endpoint that was given to another client, or minted, is not sent',
      ],
    ],
  },
  {
    says: "so the owner of the database can't confirm",
    tests: [
      ['test/cli/key/confirm.test.ts', 'is absent where the owner of the database wrote, changed or prolonged the row'],
    ],
  },
  {
    says: "The owner can't use a confirmation twice either",
    tests: [
      [
        'test/cli/key/confirm.test.ts',
        'is confirmed for one act, also where the owner of the database puts back what it was before',
      ],
    ],
  },
  {
    says: "in a bucket they can't be removed for 400 days",
    tests: [['test/audit/place.test.ts', 'gets segments that nobody can remove while the audit is kept']],
  },
  {
    says: "Segments that left before can't be forged",
    tests: [
      ['test/audit/segment.test.ts', "can't be forged: its head is signed by the installation, for a segment"],
      ['test/audit/tamper.test.ts', 'is found to have put back an old copy of the table, also after acts went on'],
    ],
  },
  {
    says: "The owner of the database can't add a key with a right code",
    tests: [
      [
        'test/cli/key/signing-codes.test.ts',
        'that somebody else has added is in no new client’s file and in no JWKS of workers, and doctor names it',
      ],
    ],
  },
  {
    says: 'The owner can’t change, so that tokenmill believes it',
    tests: [
      ['test/security/owner.test.ts', 'by an UPDATE of one column grants nothing that was not granted before'],
      ['test/security/owner.test.ts', 'by a DELETE grants nothing'],
      [
        'test/workers/line/unproved.test.ts',
        'can’t have a repeat answered with the token of another job; an operator says which decision stands',
      ],
      [
        'test/workers/line/unproved.test.ts',
        'can’t have a text signed for a client, a result told to another client, or one that answers another request',
      ],
      [
        'test/security/owner.test.ts',
        'the owner of the database who changes the lives of keys changes nothing for a process that has seen them',
      ],
    ],
  },
  {
    says: 'one that was cut off during that change seals nothing',
    tests: [
      [
        'test/vault/ring/known-lives.test.ts',
        'is nothing where a failover lost the turning that others have seen, until an operator says what holds',
      ],
    ],
  },
  {
    says: 'nobody can have a scheme token changed, deleted or fetched in place of another one',
    tests: [
      [
        'test/workers/provider/jobs.test.ts',
        'is neither changed at the network nor asked for, and the job is told the cause',
      ],
    ],
  },
  {
    says: "has no client's key, can't use the card later",
    tests: [
      ['test/security/theft.test.ts', 'is an encrypted card that belongs to its entity'],
      ['test/token/capture-time.test.ts', 'is fresh from 15 minutes before acceptance to 60 seconds after it'],
    ],
  },
  {
    says: 'make a job of their own take effect',
    tests: [
      ['test/security/envelopes.test.ts', 'that is signed by nobody we know, or for somebody else, leaves nothing'],
    ],
  },
  {
    says: 'read a card number: Redis',
    tests: [['test/security/canary.test.ts', 'makes tokens, by JWE and by OpenPGP, with a security code inside']],
  },
  {
    says: 'change a job, or use its block in another job',
    tests: [
      [
        'test/security/envelopes.test.ts',
        'with another block than its own, or with one where none belongs, leaves nothing',
      ],
      ['test/security/theft.test.ts', 'is a block that opens for nobody else'],
    ],
  },
  {
    says: 'make a client accept a false result',
    tests: [
      ['test/security/theft.test.ts', 'is a result that nobody believes but whom it is for, and nobody else can make'],
      ['test/producers/replayed-answers.test.ts', 'is no answer for %s, whatever it is'],
    ],
  },
  {
    says: 'crash workers again and again',
    tests: [['test/chaos/poison.test.ts', 'as a job fails alone, leaves a copy, and frees its id']],
  },
]

/** Sentences with the word that promise nothing which a test could try, and why. */
const NO_TEST: Readonly<Record<string, string>> = {
  "An account without a right code signs in to the console, which can't check codes": 'a limit, not a promise',
  "an API key has 256 random bits and can't be found by trying": 'a matter of arithmetic',
  "If somebody can't sign in after an invite": 'advice',
  "The console can't check the code of the row that connects an account, as it can't check that of a passkey":
    'a limit, not a promise',
  "A process can't notice that a count of seals was lowered before its own first reservation": 'a limit, not a promise',
  "Use a place that the owner of the database can't change": 'advice',
  "it can't tell your restore from an attack": 'a limit, not a promise',
  "you can't erase a single card from backups by destroying a key": 'a limit, not a promise',
}

/** Sentences, and cells of tables. */
function sentencesOf(page: string): string[] {
  return page.split('\n').flatMap(line => line.split(/(?<=[.;])\s+|\|/).map(part => part.trim()))
}

/** The second column of the table of what somebody with access to Redis can and can't do. */
function cantsOfRedis(): string[] {
  const [, section = ''] = PAGE.split('## What somebody with access to Redis can do\n')
  const [table = ''] = section.trim().split('\n\n')
  const rows = table.split('\n').slice(2)
  return rows.map(row => row.split('|')[2]?.trim() ?? '')
}

const WORDS = [...PROMISES.map(({ says }) => says), ...Object.keys(NO_TEST)]

it('each sentence of docs/security.md that says “can’t” is in one of the two tables', () => {
  const without = sentencesOf(PAGE).filter(sentence => sentence !== "can't" && /\bcan['’]t\b/.test(sentence))
  const known = (sentence: string) => WORDS.some(words => sentence.includes(words) || words.includes(sentence))
  expect(without.length).toBeGreaterThan(20)
  expect(without.filter(sentence => !known(sentence))).toEqual([])
  expect(cantsOfRedis()).toHaveLength(5)
  expect(cantsOfRedis().filter(sentence => !known(sentence))).toEqual([])
})

it('a sentence that promises several things has all of them in the table', () => {
  for (const sentence of sentencesOf(PAGE)) {
    const cants = sentence.match(/\bcan['’]t\b/g)?.length ?? 0
    const found =
      WORDS.filter(words => sentence.includes(words))
        .join(' ')
        .match(/\bcan['’]t\b/g)?.length ?? 0
    if (sentence !== "can't" && cants > 0) expect([sentence, found]).toEqual([sentence, cants])
  }
})

it('what the tables quote stands in the page, once', () => {
  expect(WORDS.filter(words => PAGE.split(words).length !== 2)).toEqual([])
})

it('each promise has its tests, under the names of the table', () => {
  const missing = PROMISES.flatMap(({ tests }) => tests).filter(([file, title]) => {
    const path = join(root, file)
    if (!existsSync(path)) return true
    const text = readFileSync(path, 'utf8')
    return ![`'${title}'`, `"${title}"`, `\`${title}\``].some(quoted => text.includes(quoted))
  })
  expect(missing).toEqual([])
  expect(PROMISES.filter(({ tests }) => tests.length === 0)).toEqual([])
})
