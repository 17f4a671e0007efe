// Everything that a mix of jobs left in the store and told its sender, with numbers in place of ids, to be compared
// with what the same mix left elsewhere.
import { panOf } from '../../../bin/sample/pan.ts'
import { type UnpackedOutcome, unpack } from '../../../src/job/chunk-outcomes.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { reuseTokenOf } from '../../../src/token/token.ts'
import type { Installation } from '../../support/installation.ts'
import type { Job, World } from '../provider/bundle.ts'
import { type AnyJob, guessedDigits, TOKENS } from './mix.ts'

/** `order`: of the jobs' receipts. */
export interface Mix {
  mix: readonly AnyJob[]
  no: number
  order: readonly number[]
}

/** One installation, with two processes that work the same mix. */
export interface Side {
  installation: Installation
  worlds: [World, World]
}

export async function leftBy({ installation, worlds }: Side, { mix, no, order }: Mix, jobs: readonly Job[]) {
  const { store } = installation.vault
  const { clientId } = installation.credentials.signingKey
  const own = Array.from({ length: TOKENS }, (_, index) => receiptId(clientId, `mix-${no}-token-${index}`))
  const schemes = mix.flatMap(({ ask }, index) =>
    ask.is === 'scheme' ? receiptId(clientId, `mix-${no}-token-${150 + index}`) : [],
  )
  const receiptIds = [...own, ...schemes, ...order.flatMap(index => jobs[index]?.receiptId ?? [])]
  const names = new Map(receiptIds.map((id, index) => [id, `receipt ${index}`]))
  names.set(installation.scope, 'scope')
  const query = async (text: string, ids: readonly string[]) =>
    (await store.query<Record<string, unknown>>({ text, values: [`{${ids.join(',')}}`] })).rows
  const receipts = await query(
    `select receipt_id, kind, jti, status, code, outcome, refusal, token_id, revision, attempt, reversal, failed_records,
  counts, reasons, outcomes from tokenmill.receipt where receipt_id = any($1::uuid[])`,
    receiptIds,
  )
  const byId = new Map(receipts.map(row => [row['receipt_id'], shownReceipt(row)]))
  const tokensIn = (row: ReturnType<typeof shownReceipt> | undefined) =>
    [row?.['token_id'], ...(row?.outcomes ?? []).map(({ tokenId }) => tokenId)].map(id => String(id ?? ''))
  const ids = [...new Set(receiptIds.flatMap(id => tokensIn(byId.get(id))))].filter(id => id !== '')
  const rows = await tokens.findByIds(store, ids)
  for (const [index, id] of ids.entries()) {
    const thirdParty = rows.find(({ tokenId }) => tokenId === id)?.thirdParty ?? null
    for (const name of [id, reuseTokenOf({ tokenId: id, thirdParty })]) names.set(name, `token ${index}`)
    if (thirdParty) names.set(thirdParty.token, `token ${index}`)
  }
  const named = (value: unknown) =>
    JSON.parse(
      JSON.stringify(value, (key, part) => {
        // The network counts its tokens.
        if (key === 'network_token') return typeof part
        return typeof part === 'string' ? (names.get(part) ?? part) : part
      }),
    )
  const sortedBy = (list: unknown) => (named(list) as unknown[]).map(one => JSON.stringify(one)).sort()
  const of = (table: string, columns: string) =>
    query(`select ${columns} from tokenmill.${table} where token_id = any($1::uuid[])`, ids)
  const owners = await references.findByTokens(store, ids)
  const told = worlds.flatMap(world => world.told)
  const reversed = new Set(mix.flatMap(({ ask }, index) => (ask.is === 'reverse' ? reversedBy(jobs[index]) : [])))
  const answers = receiptIds.map(id => {
    const results = told.flatMap(one => (one.type === 'result' && one.receipt_id === id ? [one] : []))
    const result = results.toSorted((a, b) => a.revision - b.revision).at(-1)
    if (!result) throw new Error(`job ${named(id)} has no result`)
    const { result_id, receipt_id, envelope, answers, accepted_at, completed_at, error, ...rest } = result
    // A repeat is answered with the token as it is by then, and a job that was undone meanwhile in one of two ways.
    const isRepeated = mix[jobs.findIndex(job => job.receiptId === id)]?.deliveries === 2
    if (reversed.has(id)) return undefined
    return isRepeated ? rest.status : { ...rest, details: error?.details }
  })
  return {
    receipts: named(receiptIds.map(id => byId.get(id))),
    tokens: sortedBy(rows.map(row => shownToken(row, installation))),
    cards: sortedBy(await of('card', 'token_id')),
    images: sortedBy(await of('before_image', 'receipt_id, token_id')),
    marks: sortedBy(await of('sequence_mark', 'token_id, sequence')),
    owners: sortedBy(
      owners.map(({ referenceNo: _, createdAt: _c, updatedAt: _u, givenAt, before, mark, ...reference }) => ({
        ...reference,
        given: givenAt?.slice(1),
        before: before && { tokenId: before.tokenId },
        line: mark?.line,
      })),
    ),
    schemes: sortedBy(
      await query(
        `select token_id, state, provider from tokenmill.scheme_token where token_id = any($1::uuid[]) and state <> 'DELETED'`,
        ids,
      ),
    ),
    guessed: await query('select digits, misses from tokenmill.guess where digits = any($1::text[]) order by digits', [
      guessedDigits(no),
      ...Array.from({ length: 300 }, (_, index) => digitsOf(panOf(no * 1000 + index, 41))),
    ]),
    answers: named(answers),
  }
}

const digitsOf = (pan: string) => `${pan.slice(0, 8)}${pan.slice(-4)}`

function reversedBy(job: Job | undefined): string[] {
  const jws = (job?.data as { jws?: string } | undefined)?.jws ?? ''
  const claims = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as {
    request: { receipt_id?: string }
  }
  return claims.request.receipt_id === undefined ? [] : [claims.request.receipt_id]
}

function shownReceipt({
  outcomes,
  ...row
}: Record<string, unknown>): Record<string, unknown> & { outcomes: UnpackedOutcome[] } {
  const records =
    typeof outcomes === 'string' ? unpack(outcomes).map(record => ({ ...record, presented: undefined })) : []
  return { ...row, outcomes: records }
}

function shownToken(row: StoredToken, { vault: { ring } }: Installation) {
  const { sealed, sealVersion, mark, cards, givenAt, tokenId, tokenScope, ...rest } = row
  const { createdAt: _c, updatedAt: _u, storedCards: _s, analyticsToken: _a, link: _l, ...shown } = rest
  const pan = sealed && sealVersion !== null ? ring.open(sealed, sealVersion, tokenId, tokenScope).reveal() : null
  return {
    ...shown,
    tokenId,
    tokenScope,
    pan,
    cards: cards.length,
    line: mark?.line,
    given: Object.keys(givenAt ?? {}).sort(),
  }
}

/** Says which rows differ, because a counterexample alone doesn't. Undefined: none. */
export function differenceOf(one: Record<string, unknown>, other: Record<string, unknown>): string | undefined {
  const linesOf = (left: Record<string, unknown>) =>
    Object.entries(left).flatMap(([name, rows]) =>
      (rows as unknown[]).map(
        (row, index) => `${name} ${index} ${typeof row === 'string' ? row : JSON.stringify(row)}`,
      ),
    )
  const [ours, theirs] = [linesOf(one), linesOf(other)]
  const more = ours.filter(line => !theirs.includes(line)).map(line => `together: ${line}`)
  const less = theirs.filter(line => !ours.includes(line)).map(line => `one by one: ${line}`)
  return more.length + less.length > 0 ? [...more, ...less].sort().join('\n') : undefined
}
