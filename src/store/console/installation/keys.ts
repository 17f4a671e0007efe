// The keys of the installation as the console shows them: names, states and moments, and never a key. People for some entities see
// none of them. It only reads.
import type { DataKeyState } from '../../access/data-keys.ts'
import { SEALS_MAX } from '../../access/data-keys.ts'
import type { KekState } from '../../access/keks.ts'
import type { Db } from '../../pool.ts'
import { hashedColumnsOf } from '../../reseal/hashed-columns.ts'
import type { Reseal } from '../../reseal/reseals.ts'
import { BEFORE_IMAGE, sealingPurpose } from '../../reseal/sealed-columns.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

const ALL = '$1::uuid[] is null'

export interface SeenDataKey {
  purpose: string
  version: number
  state: DataKeyState
  kekId: string
  /** ms since the epoch, as are all times here. */
  createdAt: number
  activatedAt: number | null
  retiredAt: number | null
  /** Somebody else may have it, and not all was done about that. */
  compromisedAt: number | null
  /** It has made half of the seals that a key may make. */
  isFull: boolean
  /**
   * How it is known that no row needs a former version: by a pass over all rows, or because its rows are erased in time. Null: the
   * rows keep it.
   */
  provedBy: 'pass' | 'age' | null
  /** The last re-encryption of the purpose. */
  reseal: Pick<Reseal, 'version' | 'state' | 'passFound' | 'passDone' | 'startedAt' | 'cleanAt'> | null
}

interface DataKeyRow extends Omit<SeenDataKey, 'isFull' | 'provedBy' | 'reseal'> {
  seals: number
  resealVersion: number | null
  resealState: Reseal['state']
  passFound: number
  passDone: number
  startedAt: number
  cleanAt: number | null
}

/** The versions that aren't destroyed. */
export async function listDataKeys(sight: Sight, db: Db): Promise<SeenDataKey[]> {
  const { rows } = await db.query<DataKeyRow>({
    text: `select
  k.purpose,
  k.version,
  k.state,
  k.kek_id as "kekId",
  k.seals,
  k.created_at as "createdAt",
  k.activated_at as "activatedAt",
  k.retired_at as "retiredAt",
  case when k.compromise_ended_at is null then k.compromised_at end as "compromisedAt",
  r.version as "resealVersion",
  r.state as "resealState",
  r.pass_found as "passFound",
  r.pass_done as "passDone",
  r.started_at as "startedAt",
  r.clean_at as "cleanAt"
from tokenmill.data_key as k
left join tokenmill.reseal as r on r.purpose = k.purpose
where ${ALL} and k.state <> 'DESTROYED'
order by k.purpose, k.version desc`,
    values: [entitiesOf(sight)],
  })
  return rows.map(({ seals, resealVersion, resealState, passFound, passDone, startedAt, cleanAt, ...key }) => ({
    ...key,
    isFull: seals >= SEALS_MAX / 2,
    provedBy: provedBy(key.purpose),
    reseal:
      resealVersion === null
        ? null
        : { version: resealVersion, state: resealState, passFound, passDone, startedAt, cleanAt },
  }))
}

/** As for the destruction of keys (src/acts/key/destroy-key.ts). */
function provedBy(purpose: string): SeenDataKey['provedBy'] {
  if (purpose === BEFORE_IMAGE.purpose || hashedColumnsOf(purpose) !== undefined) return 'age'
  return sealingPurpose(purpose) === undefined ? null : 'pass'
}

export interface SeenKek {
  kekId: string
  state: KekState
  createdAt: number
  retiredAt: number | null
  /** How many data keys it wraps. */
  wraps: number
  /** Live processes that open the vault, and those of them that have proved that they have it. */
  processes: number
  having: number
  /** Where processes have not: `bulk on host-a`. */
  lacking: string[]
}

/** `liveMs`: a process that was silent for longer isn't counted. A process that opens no vault names no keys, and isn't either. */
export async function listKeks(sight: Sight, db: Db, { liveMs }: { liveMs: number }): Promise<SeenKek[]> {
  const { rows } = await db.query<SeenKek>({
    text: `select
  k.kek_id as "kekId",
  k.state,
  k.created_at as "createdAt",
  k.retired_at as "retiredAt",
  (select count(*) from tokenmill.data_key as d where d.kek_id = k.kek_id and d.state <> 'DESTROYED') as wraps,
  count(p.process_id) as processes,
  count(p.process_id) filter (where k.kek_id = any(p.keys)) as
having,
  coalesce(array_agg(distinct p.role || ' on ' || p.host) filter (where not k.kek_id = any(p.keys)), '{}') as lacking
from tokenmill.kek as k
left join tokenmill.process as p on p.role in ('interactive', 'bulk', 'three-ds') and p.ended_at is null
  and p.keys <> '{}' and p.seen_at >= now() - make_interval(secs => $2 / 1000.0)
where ${ALL}
group by k.kek_id
order by k.created_at desc, k.kek_id`,
    values: [entitiesOf(sight), liveMs],
  })
  return rows
}

export interface SeenSigningKey {
  kid: string
  alg: string
  state: 'ANNOUNCED' | 'ACTIVE' | 'RETIRED'
  /** When it began to sign; of an announced key the planned time. */
  activeAt: number
  retiredAt: number | null
}

/** Newest first. */
export async function listSigningKeys(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenSigningKey[]> {
  const { rows } = await db.query<SeenSigningKey>({
    text: `select
  kid,
  alg,
  state,
  active_at as "activeAt",
  retired_at as "retiredAt"
from tokenmill.signing_key
where ${ALL}
order by active_at desc, kid
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}

export interface SeenGatewayKey {
  kid: string
  createdAt: number
  forgottenAt: number | null
  /** The data keys that it opens, as `purpose/version`. */
  opens: string[]
}

/** Newest first. */
export async function listGatewayKeys(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenGatewayKey[]> {
  const { rows } = await db.query<SeenGatewayKey>({
    text: `select
  r.kid,
  r.created_at as "createdAt",
  r.forgotten_at as "forgottenAt",
  coalesce((
    select array_agg(s.purpose || '/' || s.version order by s.purpose, s.version)
    from tokenmill.shared_key as s
    where s.kid = r.kid
  ), '{}') as opens
from tokenmill.role_key as r
where ${ALL}
order by r.forgotten_at is not null, r.created_at desc, r.kid
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}
