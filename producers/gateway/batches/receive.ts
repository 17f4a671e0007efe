// Turns a body that streams in into an accepted batch: rows become records, records become chunks, and each chunk is
// encrypted, signed and stored before the next one is read. Cards in the clear are only in memory, and only about one
// chunk of them at a time. No record is worked before the whole body has arrived.

import { timingSafeEqual } from 'node:crypto'
import { assert, Fault, isRefusal, type Refusal, refuse } from '../../../src/errors.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { ENVELOPE } from '../../../src/job/envelope/envelope.ts'
import { receiptId, refusalResultId } from '../../../src/job/envelope/ids.ts'
import { panNameRefusal } from '../../../src/job/envelope/names.ts'
import { CHUNK } from '../../../src/job/token-batch.ts'
import { every } from '../../../src/recurring.ts'
import type { Batch } from '../../../src/store/batch/batch-row.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as chunks from '../../../src/store/batch/intake-chunks.ts'
import type { PublicCaptureKey } from '../../../src/vault/capture/encrypt.ts'
import type { CurrentKey } from '../../../src/vault/ring/held-keys.ts'
import { withReload } from '../../../src/vault/ring/reload.ts'
import { chunkIn, cutRows, type RowChunk } from '../../rows/chunks.ts'
import { readPlainRows } from '../../rows/rows.ts'
import { tokenBatch } from '../../token-batch.ts'
import type { Caller } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { mustJudgeRows, rowsRefusal } from './access.ts'
import type { Meter, Metered } from './body.ts'
import { type BatchRequest, formOf, layoutOf } from './query.ts'

export type ReceiveDeps = Pick<
  GatewayDeps,
  'store' | 'catalogue' | 'requestReply' | 'signingKey' | 'ring' | 'directory' | 'clock' | 'log'
>

export interface Body {
  format: 'csv' | 'ndjson'
  /** Begins to read it. */
  metered(keys: Meter['keys']): Metered
}

const TOUCH_MS = 30_000

/** Returns the batch, which this request or the same request before has made. Throws if the body is broken. */
export async function receive(
  caller: Caller,
  batch: BatchRequest,
  body: Body,
  captureKey: PublicCaptureKey,
  deps: ReceiveDeps,
): Promise<intake.Intake | Refusal> {
  const { store } = deps
  const { clientId } = caller.client
  const known = await intake.find(store, clientId, batch.batchId)
  if (known && !caller.client.entities.includes(known.entityId)) return refuse('batch_id_reused', 'query.batch_id')
  if (known) {
    const metered = body.metered([await keyOf(known, deps)])
    // Whoever sent the body first may have had roles that this caller lacks.
    const refusal = mustJudgeRows(caller, batch.recordKind, deps)
      ? await judgeRows(caller, batch, { format: body.format, metered }, deps)
      : undefined
    if (refusal) return refusal
    for await (const _ of metered.bytes);
    return sameAs(known, metered)
  }
  if (panNameRefusal({ request: { batch_id: batch.batchId } }, caller.client.names))
    return refuse('batch_id_pan', 'query.batch_id')
  const layout = layoutOf(batch)
  const { version: bodyVersion } = await withReload(deps.ring, async () => deps.ring.intakeKey())
  const metered = body.metered(deps.ring.intakeKeys())
  const begun = batch.dryRun ? undefined : await batches.find(store, clientId, batch.batchId)
  if (begun && !isLayout(begun, layout)) return refuse('batch_layout', 'query.batch_id')
  const acceptedAt = deps.clock()
  const times = { acceptedAt, expiresAt: acceptedAt + ENVELOPE.lifetimeMsDefault }
  const { batchId, recordKind, dryRun, tokenScope = null } = batch
  // Whose batch it is, as workers decide it for a chunk. The caller may use the scope: that was checked.
  const scope = tokenScope === null ? undefined : await deps.directory.scope(tokenScope)
  const entityId = scope?.entityId ?? caller.entityId
  const row = { clientId, entityId, batchId, recordKind, tokenScope, dryRun, ...times }
  const intakeNo = await intake.begin(store, row)
  let accepted = false
  try {
    const source = { format: body.format, metered }
    const read = await storeChunks(caller, batch, source, { intakeNo, ...times, captureKey }, deps)
    if (isRefusal(read)) return read
    const macs = metered.macs()
    const bodyMac = macs.get(bodyVersion)
    assert(bodyMac, 'the body is hashed under every key, also the one in use')
    const accepting = store.transaction(async db => {
      if (!(await intake.accept(db, intakeNo, { bodyMac, bodyVersion, ...read }))) return false
      // From now on workers and `batch list` know the batch, so that it can be cancelled before its first chunk.
      if (!dryRun)
        await batches.open(db, {
          clientId,
          batchId,
          entityId,
          recordKind,
          tokenScope,
          chunkRecords: CHUNK.recordsDefault,
          layout,
          acceptedAt,
          extent: { ...read, rows: read.records, name: null, sha256: null },
        })
      return true
    })
    accepted = await accepting.catch(async error => {
      // The commit may have taken effect although its answer was lost.
      if ((await intake.find(store, clientId, batchId))?.intakeNo === intakeNo) return true
      if (intake.isAccepted(error)) return false
      throw error
    })
    const made = await intake.find(store, clientId, batchId)
    assert(made, 'a body is swept away only while nothing of it comes')
    return accepted ? made : sameAs(made, { macs: () => macs })
  } finally {
    // If discarding fails, the sweeper does it later.
    if (!accepted) await intake.discard(store, intakeNo).catch(() => {})
  }
}

/** The key that hashed the body of a batch which was accepted before. */
function keyOf({ bodyVersion }: intake.Intake, { ring }: Pick<ReceiveDeps, 'ring'>): Promise<CurrentKey> {
  return withReload(ring, async () => {
    const found = ring.intakeKeys().find(({ version }) => version === bodyVersion)
    if (!found) throw new Fault('key_unavailable')
    return found
  })
}

/** Throws `Fault('key_unavailable')` if another gateway took the body meanwhile, under a key that this one hasn't loaded. */
function sameAs(known: intake.Intake, { macs }: Pick<Metered, 'macs'>): intake.Intake | Refusal {
  const mac = macs().get(known.bodyVersion)
  if (!mac) throw new Fault('key_unavailable')
  const same = known.bodyMac !== null && timingSafeEqual(known.bodyMac, mac)
  return same ? known : refuse('batch_id_reused', 'query.batch_id')
}

function isLayout({ layout }: Pick<Batch, 'layout'>, other: Record<string, unknown>): boolean {
  return Object.entries(other).every(([name, value]) => layout[name] === value)
}

/** Reads the body, up to the first rows that the caller may not send. */
async function judgeRows(
  caller: Caller,
  { recordKind }: BatchRequest,
  { format, metered }: { format: Body['format']; metered: Metered },
  deps: Pick<ReceiveDeps, 'catalogue'>,
): Promise<Refusal | undefined> {
  for await (const rows of readPlainRows(metered.bytes, { format, recordKind })) {
    const refusal = rowsRefusal(caller, recordKind, rows, deps)
    if (refusal) return refusal
  }
  return undefined
}

interface Storing {
  intakeNo: number
  acceptedAt: number
  expiresAt: number
  captureKey: PublicCaptureKey
}

async function storeChunks(
  caller: Caller,
  batch: BatchRequest,
  { format, metered }: { format: Body['format']; metered: Metered },
  storing: Storing,
  deps: ReceiveDeps,
): Promise<{ records: number; chunks: number } | Refusal> {
  const { intakeNo } = storing
  const mustJudge = mustJudgeRows(caller, batch.recordKind, deps)
  const stopTouching = every(TOUCH_MS, () => intake.touch(deps.store, intakeNo), { log: deps.log })
  const read = { records: 0, chunks: 0 }
  try {
    const { recordKind } = batch
    const rows = readPlainRows(metered.bytes, { format, recordKind, inColumns: formOf(recordKind) === 'columns' })
    for await (const chunk of cutRows(rows, CHUNK.recordsDefault, { stored: true })) {
      const refusal = mustJudge ? rowsRefusal(caller, batch.recordKind, chunk.rows, deps) : undefined
      if (refusal) return refusal
      await chunks.insert(deps.store, { intakeNo, ...(await sealChunk(caller, batch, chunk, storing, deps)) })
      read.records += chunk.rows.length
      read.chunks += 1
    }
    return read
  } finally {
    await stopTouching()
  }
}

async function sealChunk(
  caller: Caller,
  batch: BatchRequest,
  { number, rows }: RowChunk,
  { acceptedAt, expiresAt, captureKey }: Storing,
  { requestReply, signingKey, clock }: ReceiveDeps,
): Promise<Omit<chunks.NewChunk, 'intakeNo'>> {
  const { batchId, recordKind, tokenScope, policy, dryRun } = batch
  const plan = {
    batchId,
    recordKind,
    tokenScope,
    policy,
    dryRun,
    captureKey,
    acceptedAt: acceptedAt / 1000,
    chunkRecords: CHUNK.recordsDefault,
  }
  assert(number !== undefined, 'a row of a body is sent, whatever it is')
  const ask = await tokenBatch(signingKey.clientId, plan, { number, ...chunkIn(formOf(recordKind), { rows }) })
  assert(!isRefusal(ask), 'a chunk has its form')
  const options = { jti: ask.jti, expiresInMs: expiresAt - clock(), listens: false }
  const signed = await requestReply.sign(caller, 'token-batch', ask.request, options)
  assert(!isRefusal(signed) && ask.block !== undefined, 'a chunk can be signed')
  const { jws } = signed.data
  const receipt = receiptId(caller.client.clientId, ask.jti)
  return {
    chunk: number,
    receiptId: receipt,
    jobId: signed.id,
    refusalId: refusalResultId(receipt, envelopeDigest(jws)),
    jws,
    block: ask.block,
    lines: JSON.stringify(rows.map(({ line, reference }) => (reference === undefined ? [line] : [line, reference]))),
    records: rows.length,
  }
}
