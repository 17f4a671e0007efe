// A lookup from request to answer: check it, find contract and card, save the intent, call the directory server under
// one transaction id, save its answer. A repeat with the same idempotency key continues where the first call stopped;
// it never begins a second authentication.

import { isRefusal } from '../errors.ts'
import { parse } from '../job/refusal.ts'
import { Secret } from '../secret.ts'
import { holdsPan } from '../token/pan.ts'
import { applyAnswer, applyFailure, OPEN_MS } from './apply-message.ts'
import { missingFields } from './areq/admission.ts'
import { areqOf, WINDOW_SIZE } from './areq/areq.ts'
import { canonicalText, LookupRequest } from './areq/lookup-request.ts'
import { type Contract, mayUse } from './contract.ts'
import { JWT_MS } from './jwt.ts'
import { type Network, networkOf } from './outcome.ts'
import type { CardSource, FoundCard, Ports } from './ports.ts'
import { isProblem, type Problem, problem, problemOf } from './problem.ts'
import { type Authentication, type Caller, type ShownLookup, shownBrand, shownLookup } from './record.ts'
import { resultKeyOf } from './result-key.ts'
import { isFinal } from './transition.ts'
import { write } from './write.ts'

interface LookedUp {
  answer: ShownLookup
  record: Authentication
  /** This call ended the authentication, so the client is to be notified now. */
  ended: boolean
}

/** Answers a lookup. `idempotencyKey`: 1 to 128 printable characters, which the caller has checked. */
export async function lookup(
  ports: Ports,
  caller: Caller,
  body: unknown,
  { idempotencyKey }: { idempotencyKey?: string | undefined } = {},
): Promise<LookedUp | Problem> {
  const parsed = parse(LookupRequest, body, 'body')
  if (isRefusal(parsed)) return problemOf(101, parsed)
  const request = parsed.value
  const contract = await ports.contracts.find(request.threeds_contract_id)
  if (!contract || !mayUse(caller, contract))
    return problem(203, { field: 'body.threeds_contract_id', reason: 'field_value' })
  const digest = await ports.requestDigest(canonicalText(request))
  const known = idempotencyKey ? await ports.authentications.findByKey(caller.clientId, idempotencyKey) : undefined
  if (known && !(await isSameRequest(ports, known, request)))
    return problem(103, { field: 'body', reason: 'jti_reused' })
  if (known && known.state !== 'OPEN') return { answer: shownLookup(known), record: known, ended: false }
  const card = await ports.findCard(caller, sourceOf(request))
  if (isProblem(card)) return card
  const network = admit(request, card)
  if (isProblem(network)) return network
  const record = known
    ? await takeUp(ports, known)
    : await begin({ ports, caller, request, contract, card, network, digest, idempotencyKey })
  if (isProblem(record)) return record
  return ask(ports, { record, request, contract, card })
}

async function isSameRequest(
  ports: Ports,
  { requestDigest, digestVersion }: Authentication,
  request: LookupRequest,
): Promise<boolean> {
  const digest = await ports.requestDigestBy(canonicalText(request), digestVersion)
  return requestDigest?.equals(digest) === true
}

function sourceOf(request: LookupRequest): CardSource {
  const { encrypted_card, public_key_alias, card, reuse_token } = request
  if (encrypted_card !== undefined)
    return {
      kind: 'encrypted',
      encryptedCard: encrypted_card,
      alias: public_key_alias ?? '',
      field: 'body.encrypted_card',
    }
  // The schema has checked that exactly one was given.
  if (card !== undefined) return { kind: 'token', token: card, field: 'body.card' }
  return { kind: 'token', token: reuse_token ?? '', field: 'body.reuse_token' }
}

/** EMV allows card numbers of 13 to 19 digits; a few Maestro cards have 12. */
const ACCOUNT_DIGITS_MIN = 13

/** The network whose directory server accepts this lookup of this card, or the problem. */
function admit(request: LookupRequest, card: FoundCard): Network | Problem {
  const network = networkOf(card.detected)
  if (network === undefined) return problem(302)
  if (card.pan.reveal().length < ACCOUNT_DIGITS_MIN)
    return problem(301, { field: sourceOf(request).field, reason: 'three_ds_pan_length' })
  const lacking = missingFields(request, network)
  if (lacking.length === 0) return network
  return problem(101, ...lacking.map(field => ({ field: `body.${field}`, reason: 'field_required' as const })))
}

interface Beginning {
  ports: Ports
  caller: Caller
  request: LookupRequest
  contract: Contract
  card: FoundCard
  network: Network
  digest: Awaited<ReturnType<Ports['requestDigest']>>
  idempotencyKey: string | undefined
}

/** Saves the authentication before anything is sent. */
async function begin({
  ports,
  caller,
  request,
  contract,
  card,
  network,
  digest,
  idempotencyKey,
}: Beginning): Promise<Authentication | Problem> {
  if (holdsPan(request.merchant_reference, card.pan.reveal()))
    return problem(101, { field: 'body.merchant_reference', reason: 'reference_pan' })
  if (holdsPan(idempotencyKey ?? '', card.pan.reveal()))
    return problem(101, { field: 'params.idempotency-key', reason: 'jti_pan' })
  const now = ports.clock()
  const authenticationId = ports.newId()
  const jti = await findSession(ports, contract, request.device_info_id, now)
  const record: Authentication = {
    authenticationId,
    transactionId: ports.newUuid(),
    entityId: contract.entityId,
    contractId: contract.contractId,
    clientId: caller.clientId,
    idempotencyKey: idempotencyKey ?? null,
    requestDigest: idempotencyKey === undefined ? null : digest.hash,
    digestVersion: digest.keyVersion,
    jti,
    tokenId: card.tokenId,
    publicKeyAlias: request.public_key_alias ?? null,
    amount: request.amount,
    currencyCode: request.currency_code,
    messageCategory: request.message_category,
    challengeIndicator: request.challenge_indicator ?? null,
    network,
    state: 'OPEN',
    findings: { order_id: request.merchant_reference, card_brand: shownBrand(card.cardBrand, network) },
    secrets: new Secret({}),
    askedUntil: now + ports.askMsMax,
    pendingUntil: now + OPEN_MS,
    createdAt: now,
    updatedAt: now,
    version: 1,
  }
  // Another call with the same key was first, and is calling the directory server.
  if (!(await ports.authentications.insert(record))) return problem(503)
  if (jti !== null) await ports.jwts.bind(jti, contract.contractId, authenticationId, now - JWT_MS)
  return record
}

/**
 * The JWT with which the browser began, if the caller names it as the device's session. Null unless we issued it for
 * this contract less than two hours ago, and it is unused.
 */
async function findSession(
  ports: Ports,
  contract: Contract,
  deviceInfoId: string,
  now: number,
): Promise<string | null> {
  const issued = await ports.jwts.find(deviceInfoId)
  const isGood = issued?.contractId === contract.contractId && issued.usedAt === null
  return isGood && issued.issuedAt > now - JWT_MS ? issued.jti : null
}

/** Continues an authentication that has no answer yet, unless another call is working on it. */
async function takeUp(ports: Ports, known: Authentication): Promise<Authentication | Problem> {
  const now = ports.clock()
  if (now < known.askedUntil) return problem(503)
  const taken = { ...known, askedUntil: now + ports.askMsMax, updatedAt: now, version: known.version + 1 }
  return (await ports.authentications.save(taken)) ? taken : problem(503)
}

/** The 3RI indicator of the next payment of a series. */
const RECURRING = '01'

interface Asked {
  record: Authentication
  request: LookupRequest
  contract: Contract
  card: FoundCard
}

async function ask(ports: Ports, { record, request, contract, card }: Asked): Promise<LookedUp | Problem> {
  const { transactionId } = record
  const server = { ...ports.server, url: `${ports.server.url}/${await resultKeyOf(ports, record)}` }
  const areq = areqOf({
    transactionId,
    request,
    contract,
    card,
    network: record.network,
    server,
    now: record.createdAt,
  })
  const answer = await ports.directory(contract).authenticate(areq)
  if (answer.kind === 'unreachable' || answer.kind === 'unknown') {
    // Releases the authentication, so that a repeat may continue at once. If this isn't saved, a repeat waits until
    // askedUntil.
    await ports.authentications.save({
      ...record,
      askedUntil: 0,
      updatedAt: ports.clock(),
      version: record.version + 1,
    })
    return problem(answer.kind === 'unknown' ? 502 : 501)
  }
  const windowSize = request.acs_window_size ?? WINDOW_SIZE
  const isRecurring = request.device_channel === '3RI' && request.three_ri_indicator === RECURRING
  const applied = await write(ports, record, current => {
    const now = ports.clock()
    if (answer.kind === 'answered')
      return applyAnswer(current, answer.ares, { now, windowSize, pan: card.pan, isRecurring })
    if (answer.kind === 'refused') return applyFailure(current, { error: 512, erro: answer.erro }, now)
    return applyFailure(current, { error: 511 }, now)
  })
  return {
    answer: shownLookup(applied.record),
    record: applied.record,
    ended: applied.moved && isFinal(applied.record.state),
  }
}
