/** The traffic of a service as the API gives it (`/api/v1/services/NAMESPACE/NAME/traffic`). */
import type { Column } from "./sources";

export interface RevisionTraffic {
  name: string;
  model_version: number;
  role: string;
  per_second: Column;
  error_percent: Column;
  p99_ms: Column;
  replicas: Column;
}

export interface Traffic {
  /** Nothing serves until somebody resumes it. */
  stopped: boolean;
  /** Unix seconds; one in each time in which nothing ran, with null in all columns. */
  at: number[];
  requests: number;
  revisions: RevisionTraffic[];
}

export type Measure = "per_second" | "error_percent" | "p99_ms" | "replicas";
