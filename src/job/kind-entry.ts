// An entry of the catalogue: everything about a kind of job that both producers and workers must know. Each kind's entry
// stands with the kind; composition.ts joins them.
import type { z } from 'zod'
import type { Role } from './choices.ts'
import type { StoredAnswer } from './stored-answer.ts'
import { isSystemClient, type SystemClient } from './system-clients.ts'

/** A request as it was sent, not yet parsed. */
export type Sent = Record<string, unknown>

/** A role that a request needs if `asks` holds. `member`: the path of the member that needs it. */
export interface MemberRole {
  role: Role
  member: string
  asks: (request: Sent) => boolean
}

export interface KindEntry {
  request: z.ZodType
  /** Schemas of requests from system clients, by client, if they differ from `request`. */
  requestFrom: Readonly<Partial<Record<SystemClient, z.ZodType>>>
  /** A description of the kind, one sentence, for the generated documents. */
  description: string
  /** The role that the job's effective roles must include; `null`: the members alone decide (roles.ts). */
  role: Role | null
  /** The members whose presence or value needs a further role. */
  memberRoles: readonly MemberRole[]
  /** Bulk kinds never share a process with interactive kinds. */
  bulk: boolean
  /** Somebody waits for the answer: status and alarms warn early when jobs of this kind wait in the queue. */
  urgent: boolean
  /** The request may hold `sequence`, because the kind changes an existing token. */
  sequenced: boolean
  /** The system clients that may sign jobs of this kind. */
  systemClients: readonly SystemClient[]
  /** Only system clients may send this kind. */
  systemOnly: boolean
  /** Workers also take jobs of a revoked client, so that what the client did before can still be reversed. */
  servesRevoked: boolean
  /** The job carries its records as an encrypted block. */
  hasBlock: boolean
  /** Reads how many records a chunk's request states; `null`: jobs of this kind aren't chunks. */
  recordsIn: ((request: Sent) => unknown) | null
  /**
   * Whether this request makes calls to a provider, so that a failed job may need compensation. A chunk compensates its
   * own failed records.
   */
  asksProvider: (request: Sent) => boolean
  /** How the answer of a succeeded job is built when the job is repeated. */
  retell: StoredAnswer
  /** The part of the HTTP interface that shows the state of such a job; `null`: none does. */
  statusAt: 'operations' | 'reports' | 'batches' | null
}

/** The schema of a request that the client `iss` sends. */
export function requestSchema({ request, requestFrom }: KindEntry, iss: string): z.ZodType {
  return (isSystemClient(iss) ? requestFrom[iss] : undefined) ?? request
}

type Stated = 'request' | 'description' | 'role' | 'retell'
type Usual = Omit<KindEntry, Stated>

const USUAL: Usual = {
  requestFrom: {},
  memberRoles: [],
  bulk: false,
  urgent: false,
  sequenced: false,
  systemClients: [],
  systemOnly: false,
  servesRevoked: false,
  hasBlock: false,
  recordsIn: null,
  asksProvider: () => false,
  statusAt: null,
}

/** An entry with what is usual in the members that it doesn't state. A member that entries don't have doesn't compile. */
export function kind<const Entry extends Pick<KindEntry, Stated> & Partial<Usual>>(
  entry: Entry & Record<Exclude<keyof Entry, keyof KindEntry>, never>,
): Usual & Entry {
  return { ...USUAL, ...entry }
}
