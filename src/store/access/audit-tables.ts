// What the list and the numbering of the audit have in the database.
import type { Tables } from '../tables.ts'

export const AUDIT_TABLES: Tables = {
  sql: 'audit',
  rights: {},
  // The list (audit-list.ts): each filter's rows, newest first.
  indexes: [
    { name: 'audit_by_time', on: 'tokenmill.audit (at, audit_id)' },
    { name: 'audit_by_actor', on: 'tokenmill.audit (actor, at, audit_id)' },
    { name: 'audit_by_action', on: 'tokenmill.audit (action, at, audit_id)' },
    // A subject may be longer than an index permits.
    { name: 'audit_by_subject', on: 'tokenmill.audit (left(subject, 200), at, audit_id)' },
    { name: 'audit_not_done', on: "tokenmill.audit (outcome, at, audit_id) where outcome <> 'done'" },
    { name: 'audit_of_entity', on: 'tokenmill.audit (entity_id, at, audit_id) where entity_id is not null' },
  ],
}
