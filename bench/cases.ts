// The cases of the bench by their letters. A case returns no line on an engine that it doesn't have.
import type { Asked } from './case/asked.ts'
import { bareLoop, decryption, encryptedFile, knownCards, wholeFile } from './case/files.ts'
import { insertRate } from './case/growing.ts'
import { ingestedLines } from './case/ledger.ts'
import { listOverHttp, listOverQueues } from './case/lists.ts'
import { putsAlone, putsBesideMigration, putsBesideSubmit } from './case/puts.ts'
import { schemeTokens, schemeTokensOneBusy } from './case/scheme.ts'
import { createdSingly, lifecycleJobs, putRate, submitted } from './case/single.ts'
import type { Line } from './line.ts'

interface Case {
  about: string
  run(asked: Asked): Promise<Line[]>
}

export const DEFAULT_CASES = 'abc'

export const CASES: Readonly<Record<string, Case>> = {
  a: { about: 'migrate of a whole file ÷ (d), and ÷ one job and INSERT per card', run: wholeFile },
  b: { about: 'migrate of rows that each have an encrypted card ÷ (e)', run: encryptedFile },
  c: { about: 'single creates through the client library ÷ (e)', run: createdSingly },
  d: { about: 'the bare loop', run: bareLoop },
  e: { about: 'RSA-2048 decryption on all cores', run: decryption },
  f: { about: 'PUT of a card, alone', run: putsAlone },
  g: { about: 'PUT of a card beside a migration', run: putsBesideMigration },
  h: { about: 'scheme tokens at a granted rate', run: schemeTokens },
  i: { about: 'the same, with one of two processes busy', run: schemeTokensOneBusy },
  j: { about: 'single lifecycle jobs ÷ two hops with nothing done in them (Redis)', run: lifecycleJobs },
  k: { about: 'PUT of a card beside submit', run: putsBesideSubmit },
  l: { about: 'PUTs of 50 connections ÷ (c)', run: putRate },
  m: { about: 'migrate --again of a file whose cards are all known ÷ its first migration', run: knownCards },
  n: { about: 'single creates through submit ÷ (e)', run: submitted },
  o: { about: 'ingest transactions ÷ COPY', run: ingestedLines },
  q: { about: 'client.batch of a list over the queues ÷ (a) of the same cards', run: listOverQueues },
  r: { about: 'the same over HTTP', run: listOverHttp },
  p: { about: 'inserts into a store of --tokens ÷ into one of 100,000 (takes long)', run: insertRate },
}
