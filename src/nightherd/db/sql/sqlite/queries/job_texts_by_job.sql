SELECT * FROM job_texts WHERE job_id = ?1;
