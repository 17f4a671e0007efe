// Texts of the OpenAPI document about error bodies: of the token service, the reporting service and 3-D Secure.
import type { Notes } from '../../../src/job/describe/annotate.ts'

export const ERROR_NOTES: Notes = {
  'error.code': 'The HTTP status of this answer.',
  'error.message': 'What went wrong, in a fixed text for each code. It never holds a value that was sent.',
  'error.details':
    'The fields that are wrong, by name. The name begins with where the field stands: `body`, `query` or `params` (path and headers).',
  '*.message': 'What is wrong with this field. It never holds the value.',
  '*.code': 'The reason as a stable word. docs/results.md lists all of them.',
  'error.timestamp': 'Time of the error, in milliseconds since 1970-01-01 UTC.',
  'error.reversal_status': {
    description:
      'Whether the operation was undone. `NONE`: there is nothing to undo. `REQUIRED`: it is being undone; you need do nothing. `COMPLETED`: it was undone, or something was built on it since, so that nothing may be undone.',
    default: 'NONE',
  },
  'error.title': 'The status in words.',
  'error.type': 'The class of the error.',
}
